"""The data dictionary: every table and column with its comment, its type and where it comes from.

It is made from the code alone (the statements of sql/schema and the models), so it can be written and tested
without data. What the comments say belongs to those files, not here.
"""

import html
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import duckdb

from warehouse.project import Model, Project, column_lineage, load_project
from warehouse.runner import build_all
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

FORMATS = ("md", "html", "json")
_GROUPS = (
    ("Dimensions", ("dim_", "bridge_")),
    ("Facts", ("fct_",)),
    ("Marts", ("mart_",)),
    ("Behind the marts", ("stg_", "int_")),
)
_KEPT_OUT = "etl_"
# Columns that the diagram shows besides keys.
_DRAWN = ("run_name", "migration", "metric", "step", "value", "value_kind", "is_current", "pair_kind")
_RUN_ROLES = ("baseline_run_id", "candidate_run_id")


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: Its name.
        type: Its type in DuckDB.
        comment: What it holds.
        sources: "table.column" of what it is directly made of; empty for loaded columns.
        origins: The same, followed back to columns that are loaded.
    """

    name: str
    type: str
    comment: str
    sources: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view.

    Attributes:
        name: Its name.
        group: The part of the dictionary in which it stands.
        comment: What a row is, with the grain.
        key: Columns that identify a row, where they are declared.
        is_published: Readers find it in the published file.
        columns: Its columns in order.
    """

    name: str
    group: str
    comment: str
    key: tuple[str, ...]
    is_published: bool
    columns: tuple[Column, ...]


def read_dictionary() -> tuple[Table, ...]:
    """Return the dictionary of the project's own schema and models.

    Raises:
        ModelError: If a model can't be read.
    """
    project = load_project(project_folder("models"), schema_files(), macro_files())
    con = duckdb.connect()
    try:
        apply_schema(con)
        apply_macros(con)
        build_all(con, project)
        return _tables(con, project)
    finally:
        con.close()


def _tables(con: duckdb.DuckDBPyConnection, project: Project) -> tuple[Table, ...]:
    typed: dict[str, dict[str, tuple[str, str]]] = {}
    for table, column, kind, comment in con.execute(
        "select table_name, column_name, data_type, coalesce(comment, '') from duckdb_columns() "
        "where schema_name = 'main' and not internal order by table_name, column_index"
    ).fetchall():
        typed.setdefault(table, {})[column] = (kind, comment)
    comments = dict(
        con.execute(
            "select table_name, comment from duckdb_tables() union all select view_name, comment from duckdb_views() "
            "where not internal"
        ).fetchall()
    )
    keys = {
        table: tuple(columns)
        for table, columns in con.execute(
            "select table_name, constraint_column_names from duckdb_constraints() where constraint_type = 'PRIMARY KEY'"
        ).fetchall()
    }
    models = {model.name: model for model in project.models}
    traced = _trace(project.models, {name: tuple(columns) for name, columns in typed.items()})
    names = [name for name in typed if not name.startswith(_KEPT_OUT)]
    return tuple(
        _table(name, typed[name], comments.get(name) or "", keys.get(name, ()), models.get(name), traced)
        for _, prefixes in _GROUPS
        for name in sorted(names)
        if name.startswith(prefixes)
    )


def _table(
    name: str,
    columns: dict[str, tuple[str, str]],
    comment: str,
    key: tuple[str, ...],
    model: Model | None,
    traced: dict[str, dict[str, tuple[str, ...]]],
) -> Table:
    group = next(title for title, prefixes in _GROUPS if name.startswith(prefixes))
    sources = traced.get(name, {})
    return Table(
        name=name,
        group=group,
        comment=model.description if model else comment,
        key=model.grain if model else key,
        is_published=group != "Behind the marts",
        columns=tuple(
            Column(
                column,
                kind,
                (model.columns.get(column, "") if model else text),
                sources.get(column, ()),
                _origins(f"{name}.{column}", traced),
            )
            for column, (kind, text) in columns.items()
        ),
    )


def _trace(models: Iterable[Model], columns_of: dict[str, tuple[str, ...]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return for each model and column the "table.column" names that it is directly made of."""
    found = {}
    for model in models:
        upstream = {name: columns_of[name] for name in model.depends_on}
        found[model.name] = {
            column: tuple(f"{table}.{name}" for table, name in sources)
            for column, sources in column_lineage(model, upstream).items()
        }
    return found


def _origins(column: str, traced: dict[str, dict[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Follow a column of a model back to loaded columns; nothing for a loaded one."""
    if column.partition(".")[0] not in traced:
        return ()
    seen, waiting, ends = set(), [column], set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        table, _, name = current.partition(".")
        if table in traced:
            waiting += traced[table].get(name, ())
        else:
            ends.add(current)
    return tuple(sorted(ends))


def to_json(tables: Iterable[Table]) -> str:
    """Return the dictionary as JSON: a list of tables with their columns."""
    return json.dumps([asdict(table) for table in tables], indent=1, ensure_ascii=False) + "\n"


def er_diagram(tables: Iterable[Table]) -> str:
    """Return the star as an entity-relationship diagram in Mermaid: keys, and which table refers to which."""
    star = [table for table in tables if table.group in ("Dimensions", "Facts")]
    owners = {column: table.name for table in star for column in table.key if len(table.key) == 1}
    lines = ["erDiagram"]
    for table in star:
        lines.append(f"    {table.name} {{")
        for column in table.columns:
            mark = " PK" if column.name in table.key else " FK" if column.name in owners else ""
            if mark or column.name in _DRAWN:
                lines.append(f"        {column.type.split('(')[0].lower()} {column.name}{mark}")
        lines.append("    }")
    for table in star:
        for column in table.columns:
            owner = owners.get(column.name)
            if owner and owner != table.name:
                lines.append(f"    {owner} ||--o{{ {table.name} : {column.name}")
            elif column.name in _RUN_ROLES:
                lines.append(f"    dim_run ||--o{{ {table.name} : {column.name}")
    return "\n".join(lines)


def to_markdown(tables: Iterable[Table]) -> str:
    """Return the dictionary as Markdown, as docs/data_dictionary.md holds it."""
    tables = tuple(tables)
    lines = [
        "# Data dictionary",
        "",
        "Made by `firstdrift dictionary` from the comments of `sql/schema` and `models`; do not edit. All tables of",
        "the first three parts lie in the published file, in the schema `main`.",
        "",
        "```mermaid",
        er_diagram(tables),
        "```",
    ]
    group = ""
    for table in tables:
        if table.group != group:
            group = table.group
            lines += ["", f"## {group}"]
        lines += ["", f"### {table.name}", "", table.comment]
        if table.key:
            lines += ["", "One row for each: " + ", ".join(f"`{column}`" for column in table.key) + "."]
        has_sources = any(column.sources for column in table.columns)
        lines += ["", "| column | type | what it holds |" + (" made from |" if has_sources else "")]
        lines += ["| --- | --- | --- |" + (" --- |" if has_sources else "")]
        for column in table.columns:
            cells = [f"`{column.name}`", column.type.lower(), column.comment]
            if has_sources:
                cells.append(", ".join(f"`{source}`" for source in column.sources))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def to_html(tables: Iterable[Table]) -> str:
    """Return the dictionary as one self-contained page in which every source is a link."""
    escape = html.escape
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">',
        "<title>Data dictionary - firstdrift</title>",
        f"<style>{_STYLE}</style></head><body><h1>Data dictionary</h1><nav>",
    ]
    tables = tuple(tables)
    parts += [f'<a href="#{table.name}">{table.name}</a>' for table in tables]
    parts.append("</nav>")
    for table in tables:
        key = f"<p>One row for each: {escape(', '.join(table.key))}.</p>" if table.key else ""
        parts.append(f'<h2 id="{table.name}">{table.name}</h2><p>{escape(table.comment)}</p>{key}<table>')
        for column in table.columns:
            parts.append(
                f'<tr id="{table.name}.{column.name}"><td><code>{escape(column.name)}</code></td>'
                f"<td>{escape(column.type.lower())}</td><td>{escape(column.comment)}</td><td>{_links(column)}</td></tr>"
            )
        parts.append("</table>")
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _links(column: Column) -> str:
    found = ", ".join(f'<a href="#{source}">{source}</a>' for source in column.sources)
    deeper = [origin for origin in column.origins if origin not in column.sources]
    if deeper:
        found += "<br><small>from " + ", ".join(f'<a href="#{o}">{o}</a>' for o in deeper) + "</small>"
    return found


_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:auto;padding:1rem}"
    "nav{columns:14rem}nav a{display:block}table{border-collapse:collapse;width:100%}"
    "td{border-bottom:1px solid #8886;padding:.2rem .6rem .2rem 0;vertical-align:top;overflow-wrap:anywhere}"
    "tr:target{background:#fd06}"
)


def dictionary_text(form: str) -> str:
    """Return the dictionary of the project in one of `FORMATS`."""
    render = {"md": to_markdown, "html": to_html, "json": to_json}[form]
    return render(read_dictionary())
