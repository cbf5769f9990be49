"""The questions of sql/queries: listing and asking them, read-only."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.names import listed_names, meant_name
from warehouse.settings import project_folder

_PARAM = re.compile(r"^--\s*param\s+(?P<name>[a-z_]+)\s*:\s*(?P<text>[^=]*?)\s*=\s*(?P<default>.*?)\s*$")
_VALUES = re.compile(r"^--\s*values\s+(?P<name>[a-z_]+)\s*:\s*(?P<query>.+?)\s*$")


def _files() -> dict[str, Path]:
    return {path.stem: path for path in sorted((project_folder("sql") / "queries").glob("*.sql"))}


def list_questions() -> list[tuple[str, str]]:
    """Return name and title of each question; the title is the first line of its file."""
    return [
        (name, path.read_text(encoding="utf-8").splitlines()[0].removeprefix("--").strip())
        for name, path in _files().items()
    ]


def parameters_of(sql: str) -> dict[str, str]:
    """Return the parameters that the header of a question declares, each with its default.

    A header line reads `-- param name: what it is = default`.
    """
    found = [_PARAM.match(line) for line in sql.splitlines()]
    return {matched["name"]: matched["default"] for matched in found if matched}


def values_of(sql: str) -> dict[str, str]:
    """Return, by parameter, the statement that gives the values it may have.

    A header line reads `-- values name: select ...`; a parameter without one takes any number.
    """
    found = [_VALUES.match(line) for line in sql.splitlines()]
    return {matched["name"]: matched["query"] for matched in found if matched}


def run_question(con: duckdb.DuckDBPyConnection, question: str, given: dict[str, str]) -> pa.Table:
    """Ask a question.

    Args:
        con: A read-only connection to the published file.
        question: SQL, or the name of a file in sql/queries.
        given: Values of its parameters, where they differ from the defaults.

    Raises:
        ValueError: If a parameter is not known, nothing in the file has its value, or the question is neither a name
            nor SQL.
    """
    path = _files().get(question)
    if path is None and re.fullmatch(r"[a-z0-9_]+", question):
        raise ValueError(f"There is no question called {question}; `firstdrift query --list` lists them.")
    sql = path.read_text(encoding="utf-8") if path else question
    if len(con.extract_statements(sql)) > 1:
        raise ValueError("The question holds several statements; ask one at a time.")
    defaults = parameters_of(sql)
    unknown = sorted(given.keys() - defaults.keys())
    if unknown and path:
        raise ValueError(f"{question} has no parameter {', '.join(unknown)}; it has {', '.join(defaults) or 'none'}.")
    values = {**defaults, **given}
    for name, query in values_of(sql).items():
        values[name] = _checked(con, question if path else "The question", name, query, values[name], name in given)
    relation = con.sql(sql, params=values) if values else con.sql(sql)
    if relation is None:
        raise ValueError("The statement returns no rows; ask with a SELECT.")
    return relation.to_arrow_table()


def _checked(con: duckdb.DuckDBPyConnection, question: str, name: str, query: str, value: str, is_given: bool) -> str:
    """Return the value of a parameter as the file spells it.

    Where the default belongs to the examples and the file offers a single other value, that one is meant.
    """
    rows = con.execute(f"select distinct cast(value as varchar) from ({query}) as offered (value) order by all")
    known = [text for (text,) in rows.fetchall() if text is not None]
    meant = meant_name(con, value, known)
    if meant is not None:
        return meant
    if is_given:
        raise ValueError(f"No {name} is called {value}; there are {listed_names(known, value)}.")
    if not known:
        raise ValueError(
            f"{question} asks about the {name} {value} unless told otherwise, and the file holds none yet."
        )
    if len(known) == 1:
        return known[0]
    raise ValueError(
        f"{question} asks about the {name} {value} unless told otherwise, and there is none; "
        f"give --param {name}=..., there are {listed_names(known, value)}."
    )


def questions_markdown() -> str:
    """Return the list of questions as docs/questions.md holds it."""
    lines = [
        "# Questions",
        "",
        "Made by `make generated` from `sql/queries`; do not edit. Ask one with `firstdrift query NAME`, give a",
        "parameter with `--param name=value`, or copy the file into any DuckDB client.",
        "",
        "| name | question | parameters |",
        "| --- | --- | --- |",
    ]
    for name, path in _files().items():
        sql = path.read_text(encoding="utf-8")
        title = sql.splitlines()[0].removeprefix("--").strip()
        parameters = ", ".join(f"`{key}` = {default}" for key, default in parameters_of(sql).items())
        lines.append(f"| `{name}` | {title} | {parameters} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(questions_markdown(), end="")
