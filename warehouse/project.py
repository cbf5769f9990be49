"""The models as data: one SELECT a file, its header, columns, dependencies and fingerprint.

All use of sqlglot is here, because its syntax tree changes between releases. Running a model is not.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.scope import traverse_scope

LAYERS = ("staging", "intermediate", "marts")
_HEADER = re.compile(r"^\s*--\s*(?P<key>grain|materialized)\s*:\s*(?P<value>.+?)\s*$")
_MATERIALIZED = re.compile(r"^(?:(?P<plain>view|table)|incremental\((?P<key>[a-z_]+)\))$")
_CREATED = re.compile(r"create\s+(?:or\s+replace\s+)?table\s+(?:if\s+not\s+exists\s+)?([a-z_0-9]+)", re.I)


class ModelError(ValueError):
    """A model file is not what the runner can build; the message names the file and the remedy."""


@dataclass(frozen=True)
class Model:
    """One file of models/.

    Attributes:
        name: The table or view that it makes; the file's stem.
        layer: The folder: staging, intermediate or marts.
        path: The file.
        sql: The SELECT as it stands in the file.
        description: The sentences of the header.
        grain: Columns that identify a row.
        materialization: "view", "table" or "incremental".
        key: For an incremental model: the column by which it is rebuilt.
        depends_on: Relations that it reads, sorted.
        columns: Output columns in order, each with its comment.
        fingerprint: Hash of the normalised SQL, of the macros and of all SQL that it reads from.
    """

    name: str
    layer: str
    path: Path
    sql: str
    description: str
    grain: tuple[str, ...]
    materialization: str
    key: str | None
    depends_on: tuple[str, ...]
    columns: Mapping[str, str]
    fingerprint: str


@dataclass(frozen=True)
class Project:
    """The models in the order in which they are built.

    Attributes:
        models: Every model after those it reads.
        sources: Tables of the star schema that models may read.
    """

    models: tuple[Model, ...]
    sources: frozenset[str]

    def model(self, name: str) -> Model:
        """Return the model called `name`.

        Raises:
            KeyError: If there is none.
        """
        for model in self.models:
            if model.name == name:
                return model
        raise KeyError(name)


def source_tables(schema_files: Iterable[Path]) -> frozenset[str]:
    """Return the names of the tables that the schema files create."""
    return frozenset(name for path in schema_files for name in _CREATED.findall(path.read_text(encoding="utf-8")))


def load_project(models: Path, schema_files: Iterable[Path], macro_files: Iterable[Path] = ()) -> Project:
    """Read every model below `models`.

    Args:
        models: The folder with staging/, intermediate/ and marts/.
        schema_files: Files that create the tables which models may read.
        macro_files: Files of macros; their text is part of every fingerprint.

    Returns:
        The models, each after those it reads.

    Raises:
        ModelError: If a file has not exactly one SELECT, lacks grain or materialization, leaves a column
            without comment, reads an unknown relation, or if models read each other in a circle.
    """
    sources = source_tables(schema_files)
    macros = "".join(path.read_text(encoding="utf-8") for path in macro_files)
    drafts = {}
    for layer in LAYERS:
        for path in sorted((models / layer).glob("*.sql")):
            draft = read_model(path, layer)
            if draft.name in drafts or draft.name in sources:
                raise ModelError(f"{path}: there is already a relation called {draft.name}; rename the file.")
            drafts[draft.name] = draft
    for draft in drafts.values():
        unknown = sorted(set(draft.depends_on) - drafts.keys() - sources)
        if unknown:
            raise ModelError(
                f"{draft.path}: reads {', '.join(unknown)}, which is neither a model nor a table of sql/schema."
            )
    graph = {d.name: [n for n in d.depends_on if n in drafts] for d in drafts.values()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ModelError(f"{models}: models read each other in a circle: {' -> '.join(error.args[1])}.") from error
    done: dict[str, Model] = {}
    for name in order:
        draft = drafts[name]
        upstream = "".join(done[n].fingerprint for n in draft.depends_on if n in done)
        text = macros + upstream + draft.fingerprint + (draft.key or draft.materialization)
        fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        done[name] = Model(**{**draft.__dict__, "fingerprint": fingerprint})
    return Project(tuple(done.values()), sources)


def read_model(path: Path, layer: str) -> Model:
    """Read one file: a header and a SELECT in which every column has a comment.

    Args:
        path: The file.
        layer: The folder that it counts to.

    Raises:
        ModelError: If it is something else.
    """
    text = path.read_text(encoding="utf-8")
    description, grain, materialized = _read_header(path, text)
    matched = _MATERIALIZED.match(materialized)
    if not matched:
        raise ModelError(
            f"{path}: `materialized: {materialized}` is not known; write view, table or incremental(column)."
        )
    tree = _parse_select(path, text)
    columns = _columns(path, tree)
    missing = sorted({*grain, *([matched["key"]] if matched["key"] else [])} - columns.keys())
    if missing:
        raise ModelError(f"{path}: the header names {', '.join(missing)}, which the SELECT does not put out.")
    return Model(
        name=path.stem,
        layer=layer,
        path=path,
        sql=text.strip().rstrip(";"),
        description=description,
        grain=grain,
        materialization="incremental" if matched["key"] else matched["plain"],
        key=matched["key"],
        depends_on=tuple(sorted(_dependencies(tree))),
        columns=columns,
        fingerprint=tree.sql(dialect="duckdb", comments=False),
    )


def _read_header(path: Path, text: str) -> tuple[str, tuple[str, ...], str]:
    """Split the leading comment block; sqlglot does not keep it on the SELECT."""
    found: dict[str, str] = {}
    sentences = []
    for line in text.splitlines():
        if not line.strip().startswith("--"):
            break
        matched = _HEADER.match(line)
        if matched:
            found[matched["key"]] = matched["value"]
        else:
            sentences.append(line.strip().removeprefix("--").strip())
    for key, example in (("grain", "pair_id, step"), ("materialized", "table")):
        if key not in found:
            raise ModelError(f"{path}: the header lacks `-- {key}: ...`; write for example `-- {key}: {example}`.")
    if not any(sentences):
        raise ModelError(f"{path}: the header lacks a sentence that says what a row is.")
    grain = tuple(part.strip() for part in found["grain"].split(","))
    return " ".join(s for s in sentences if s), grain, found["materialized"]


def _parse_select(path: Path, text: str) -> exp.Query:
    try:
        statements = [s for s in sqlglot.parse(text, dialect="duckdb") if s is not None]
    except SqlglotError as error:
        raise ModelError(f"{path}: this is not SQL that DuckDB would take: {error}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ModelError(f"{path}: a model is one SELECT and nothing else; found {len(statements)} statements.")
    return statements[0]


def _columns(path: Path, tree: exp.Query) -> dict[str, str]:
    columns = {}
    for projection in tree.selects:
        name = projection.alias_or_name
        if not name or name == "*":
            raise ModelError(f"{path}: name every output column; `{projection.sql()}` has no name.")
        nodes = [projection, *([projection.this] if isinstance(projection, exp.Alias) else [])]
        comments = [c.strip() for node in nodes for c in (node.comments or []) if c.strip()]
        if not comments:
            raise ModelError(f"{path}: column {name} has no comment; write `-- what it is` behind it.")
        columns[name] = comments[-1]
    return columns


def relations_of(sql: str) -> set[str]:
    """Return the names of the relations that a statement reads."""
    return _dependencies(sqlglot.parse_one(sql, dialect="duckdb"))


def _dependencies(tree: exp.Expr) -> set[str]:
    return {
        source.name
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table) and source.name
    }


def column_lineage(model: Model, columns_of: Mapping[str, Iterable[str]]) -> dict[str, list[tuple[str, str]]]:
    """Return for each output column the upstream (relation, column) pairs that it is made of.

    Args:
        model: The model.
        columns_of: Columns of the relations that it reads.
    """
    schema = {name: dict.fromkeys(columns, "varchar") for name, columns in columns_of.items()}
    try:
        roots = lineage(None, model.sql, schema, dialect="duckdb", trim_selects=False)
    except SqlglotError as error:
        raise ModelError(f"{model.path}: its columns can't be traced: {error}") from error
    assert isinstance(roots, dict)
    return {column: _leaves(roots[column], columns_of) for column in model.columns}


def _leaves(root: Node, columns_of: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return the columns at the ends of a lineage tree; a node that several columns share is visited once."""
    seen: set[int] = set()
    found: set[tuple[str, str]] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting += node.downstream
        if isinstance(node.source, exp.Table) and not node.downstream:
            found.add((node.source.name, node.name.rsplit(".", 1)[-1]))
    return sorted((table, column) for table, column in found if table in columns_of and column != "*")
