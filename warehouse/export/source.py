"""What an export holds: the published tables with their columns, keys, references and content hashes.

How it is written belongs to the module of each form.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import duckdb

from warehouse.connection import open_reader, scalar
from warehouse.project import load_project
from warehouse.publish import PUBLICATION, public_tables
from warehouse.runner import quote
from warehouse.schema import macro_files, schema_files
from warehouse.settings import project_folder

# Tables that a migration does not own; small, and often read whole.
_WHOLE = ("dim_", "bridge_", PUBLICATION)
_MIGRATION = "migration"
_RUN = "run_id"
# Keys of loaded tables that the published file does not declare; sql/checks holds the data to them.
_LOADED_KEYS = {
    "dim_step": ("run_id", "step_axis", "attempt", "step"),
    "fct_metric": ("run_id", "metric_id", "step_axis", "attempt", "step", "write_no"),
    "fct_rule_break": ("run_id", "step_axis", "attempt", "step", "metric", "rule_id"),
}
_RUN_ROLES = {"baseline_run_id": "dim_run", "candidate_run_id": "dim_run"}
# Findings over a whole run are named like rules, but are none of dim_rule.
_NO_REFERENCES = {("mart_anomaly", "rule_id")}


class ExportError(ValueError):
    """The export could not be written; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Export:
    """What an export wrote.

    Attributes:
        destination: Where to, without any password.
        version: Version of the published file that it holds.
        rows: Rows by table.
        written: Partitions that were rewritten, by table; a table that was not touched is absent.
        is_new: False where the destination held all of it already.
        notes: What a reader must know of it: rows and digits that the form can't hold.
    """

    destination: str
    version: str
    rows: dict[str, int]
    written: dict[str, int]
    is_new: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column: name, type in DuckDB, what it holds, and whether it may be null."""

    name: str
    type: str
    comment: str
    is_nullable: bool


def is_nested(kind: str) -> bool:
    """Whether a type is a list or a struct; forms without those hold it as JSON."""
    return kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION"))


@dataclass(frozen=True)
class Partition:
    """The rows of one migration, or all rows of a table that is kept whole.

    Attributes:
        migration: The migration; None for a whole table, and for rows of no known migration.
        rows: How many.
        content: Hash of the rows, whatever their order, and of the table's columns.
    """

    migration: str | None
    rows: int
    content: str


@dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
        name: Its name.
        comment: What a row is.
        columns: Its columns in order.
        key: Columns that identify a row; empty where the data promise none.
        references: Column, table, and column of that table, for each reference to a dimension.
        owner: Column that leads to the migration of a row: migration, or run_id by way of dim_run; empty for a
            table that is kept whole.
        shape: Hash of columns, types and keys.
        partitions: Its rows by migration.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    references: tuple[tuple[str, str, str], ...]
    owner: str
    shape: str
    partitions: tuple[Partition, ...]

    @property
    def rows(self) -> int:
        """Rows of all partitions."""
        return sum(part.rows for part in self.partitions)

    def where(self, migration: str | None) -> str:
        """Return the condition, in the SQL of DuckDB and Postgres, that rows of a migration meet."""
        if not self.owner:
            return "true"
        if self.owner == _MIGRATION:
            return f"{_MIGRATION} is null" if migration is None else f"{_MIGRATION} = {quote(migration)}"
        if migration is None:
            return f"{_RUN} not in (select {_RUN} from dim_run)"
        return f"{_RUN} in (select {_RUN} from dim_run where {_MIGRATION} = {quote(migration)})"

    def flat(self, text: str = "{}") -> str:
        """Return a select list in which nested columns are JSON text.

        Args:
            text: What is done with text, as SQL with {} in place of the column.
        """
        items = []
        for column in self.columns:
            name = f'"{column.name}"'
            value = f"to_json({name})::varchar" if is_nested(column.type) else name
            if is_nested(column.type) or column.type == "VARCHAR":
                value = text.format(value)
            items.append(f"{value} as {name}")
        return ", ".join(items)


@dataclass(frozen=True)
class Source:
    """The published file, open for one export.

    Attributes:
        con: A read-only connection; it sees one version, whatever is published meanwhile.
        version: Identifier of the content.
    """

    con: duckdb.DuckDBPyConnection
    version: str

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All published tables, dimensions first, in the order of names."""
        keys = _keys(self.con)
        names = [PUBLICATION, *public_tables(self.con)]
        return tuple(_table(self.con, name, keys) for name in names)


@contextmanager
def open_source(published: Path) -> Iterator[Source]:
    """Open the published file for an export.

    Raises:
        NothingPublishedError: If there is none.
    """
    with open_reader(published) as con:
        yield Source(con, scalar(con, f"select version from {PUBLICATION}"))


def _keys(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    """Return the key of each table: declared in the file, or the grain of a loaded table or model."""
    declared = con.execute(
        "select table_name, constraint_column_names from duckdb_constraints() where constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    return {**_grains(), **_LOADED_KEYS, **{name: tuple(columns) for name, columns in declared}}


@cache
def _grains() -> dict[str, tuple[str, ...]]:
    project = load_project(project_folder("models"), schema_files(), macro_files())
    return {model.name: model.grain for model in project.models}


def _table(con: duckdb.DuckDBPyConnection, name: str, keys: dict[str, tuple[str, ...]]) -> Table:
    columns = tuple(
        Column(*row)
        for row in con.execute(
            "select column_name, data_type, coalesce(comment, ''), is_nullable from duckdb_columns() "
            "where table_name = ? and schema_name = 'main' order by column_index",
            [name],
        ).fetchall()
    )
    names = {column.name for column in columns}
    key = keys.get(name, ())
    key = key if set(key) <= names else ()
    references = _references(name, names, keys)
    shape = _digest([[(c.name, c.type, c.is_nullable) for c in columns], key, references])
    owner = _owner(name, names)
    comment = scalar(con, "select coalesce(comment, '') from duckdb_tables() where table_name = ?", [name])
    return Table(name, comment, columns, key, references, owner, shape, _partitions(con, name, owner, shape))


def _references(table: str, columns: set[str], keys: dict[str, tuple[str, ...]]) -> tuple[tuple[str, str, str], ...]:
    owners = {key[0]: name for name, key in keys.items() if name.startswith("dim_") and len(key) == 1}
    found = []
    for column in sorted(columns):
        owner = _RUN_ROLES.get(column) or owners.get(column)
        if owner in keys and owner != table and (table, column) not in _NO_REFERENCES:
            found.append((column, owner, keys[owner][0]))
    return tuple(found)


def _owner(table: str, columns: set[str]) -> str:
    if table.startswith(_WHOLE):
        return ""
    return next((column for column in (_MIGRATION, _RUN) if column in columns), "")


def _partitions(con: duckdb.DuckDBPyConnection, name: str, owner: str, shape: str) -> tuple[Partition, ...]:
    # The hash of DuckDB may differ between its releases; then everything is written anew, once.
    seed = [duckdb.__version__, shape]
    totals = "count(*), sum(hash(t))"
    if not owner:
        count, total = con.execute(f"select {totals} from {name} as t").fetchall()[0]
        return (Partition(None, count, _digest([*seed, total])),)
    through = f"left join dim_run as r on r.{_RUN} = t.{_RUN}" if owner == _RUN else ""
    migration = f"{'r' if owner == _RUN else 't'}.{_MIGRATION}"
    rows = con.execute(f"select {migration}, {totals} from {name} as t {through} group by all order by 1").fetchall()
    found = tuple(Partition(migration, count, _digest([*seed, total])) for migration, count, total in rows)
    return found or (Partition(None, 0, _digest(seed)),)


def _digest(parts: list) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
