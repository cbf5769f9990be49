"""The statements of an export to Postgres: tables, keys and comments, and the rows of changed migrations.

Everything happens in the transaction of the caller. Foreign keys are checked at its end, so the order of tables does
not matter; on new tables they are made after the rows, which takes one join instead of a look-up for each row.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from warehouse.export.source import ExportError, Partition, Source, Table, is_nested
from warehouse.runner import quote

if TYPE_CHECKING:
    from psycopg import Connection

RECORD = "firstdrift_export"
_BATCH = 50_000
_NO_NUL = "replace({}, chr(0), '')"  # the one character that no text of Postgres may hold
_TYPES = {
    "BOOLEAN": "boolean",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "UBIGINT": "numeric(20, 0)",
    "HUGEINT": "numeric(39, 0)",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
}


def bring_up_to_date(db: "Connection", source: Source, report: Callable[[str], None] | None = None) -> dict[str, int]:
    """Replace what differs from the source, and record what is there now.

    Returns:
        How many partitions of each changed table were written.

    Raises:
        ExportError: If a table of another origin stands in the place of one of ours.
    """
    _run(db, _RECORD_TABLE)
    record = _read_record(db)
    remade = _tables_to_remake(db, source, set(record))
    kept = [table for table in source.tables if table not in remade]
    if remade:
        _drop_references(db)
    # Rows of a run are found by way of the dim_run that is still there, so the whole tables come last.
    for table in sorted(kept, key=lambda table: not table.owner):
        _delete(db, table, record[table.name])
    gone = record.keys() - {table.name for table in source.tables}
    for name in [*gone, *(table.name for table in remade)]:
        _run(db, f"drop table if exists {name}")
    for table in remade:
        _run(db, _definition(table))
        record[table.name] = {}
    written = _copy_changes(db, source, record, report)
    for table in source.tables if remade else ():
        _run(db, _references(table))
    _run(db, "set constraints all immediate")
    if written:
        _finish(db, source, written)
    return written


def one(db: "Connection", sql: str) -> Any:
    """Return the first value of the first row; None where there is no row."""
    row = _run(db, sql).fetchone()
    return row[0] if row else None


def _run(db: "Connection", sql: str) -> Any:
    # As bytes: statements made of names and quoted texts, which psycopg's own type for literals can't describe.
    return db.execute(sql.encode())


_RECORD_TABLE = f"""
create table if not exists {RECORD} (
    table_name text not null, migration text, content text not null, shape text not null, row_count bigint not null
);
comment on table {RECORD} is 'What firstdrift exported. Grain: table, migration.';
comment on column {RECORD}.table_name is 'The table.';
comment on column {RECORD}.migration is 'The migration; null for a table that is kept whole.';
comment on column {RECORD}.content is 'Hash of the rows.';
comment on column {RECORD}.shape is 'Hash of columns, types and keys of the table.';
comment on column {RECORD}.row_count is 'Rows of the migration, or of the table.';
"""


def _read_record(db: "Connection") -> dict[str, dict[str | None, tuple[str, str]]]:
    """Return content and shape by table and migration."""
    found: dict[str, dict[str | None, tuple[str, str]]] = {}
    for table, migration, content, shape in _run(db, f"select table_name, migration, content, shape from {RECORD}"):
        found.setdefault(table, {})[migration] = (content, shape)
    return found


def _tables_to_remake(db: "Connection", source: Source, recorded: set[str]) -> list[Table]:
    """Return the tables that are not there, or have other columns or keys than they should."""
    names = _run(db, "select relname from pg_class where relnamespace = current_schema()::regnamespace").fetchall()
    there = {name for (name,) in names}
    strange = sorted({table.name for table in source.tables} & there - recorded)
    if strange:
        raise ExportError(
            f"The schema holds {', '.join(strange)} already, and firstdrift did not make them; nothing was changed. "
            "Export to a schema of its own: add ?options=-csearch_path%3Dfirstdrift to the address."
        )
    shapes = {name: shape for name, shape in _run(db, f"select distinct table_name, shape from {RECORD}")}
    return [table for table in source.tables if table.name not in there or shapes.get(table.name) != table.shape]


def _copy_changes(
    db: "Connection",
    source: Source,
    record: dict[str, dict[str | None, tuple[str, str]]],
    report: Callable[[str], None] | None,
) -> dict[str, int]:
    written = {}
    for table in source.tables:
        recorded = record[table.name]
        for part in table.partitions:
            if recorded.get(part.migration, ("", ""))[0] != part.content:
                _copy(db, source, table, part)
                written[table.name] = written.get(table.name, 0) + 1
        if report:
            report(table.name)
    return written


def _delete(db: "Connection", table: Table, recorded: dict[str | None, tuple[str, str]]) -> None:
    """Delete the rows of migrations that changed or are gone."""
    current = {part.migration: part.content for part in table.partitions}
    for migration, (content, _) in recorded.items():
        if current.get(migration) != content:
            _run(db, f"delete from {table.name} where {table.where(migration)}")


def _drop_references(db: "Connection") -> None:
    """Drop the foreign keys between our tables, so that some of them can be replaced."""
    keys = _run(
        db,
        f"select conrelid::regclass::text, conname from pg_constraint where contype = 'f' and conrelid in "
        f"(select to_regclass(table_name) from {RECORD})",
    ).fetchall()
    for table, name in keys:
        _run(db, f'alter table {table} drop constraint "{name}"')


def _definition(table: Table) -> str:
    parts = [
        f'"{column.name}" {postgres_type(column.type)}{"" if column.is_nullable else " not null"}'
        for column in table.columns
    ]
    if table.key:
        parts.append(f"primary key ({_names(table.key)})")
    return f"create table {table.name} ({', '.join(parts)})"


def postgres_type(kind: str) -> str:
    """Return the type of Postgres for a type of DuckDB; lists and structs become jsonb.

    Raises:
        ExportError: If none is known.
    """
    if is_nested(kind):
        return "jsonb"
    if kind not in _TYPES:
        raise ExportError(f"No type of Postgres is known for {kind}: add it to warehouse/export/postgres_tables.py.")
    return _TYPES[kind]


def _references(table: Table) -> str:
    return ";".join(
        f'alter table {table.name} add constraint "{table.name}_{column}_fkey" '
        f'foreign key ("{column}") references {owner} ("{key}") deferrable initially deferred'
        for column, owner, key in table.references
    )


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _copy(db: "Connection", source: Source, table: Table, part: Partition) -> None:
    columns = _names(tuple(column.name for column in table.columns))
    rows = f"select {table.flat(_NO_NUL)} from {table.name} where {table.where(part.migration)}"
    options = pa_csv.WriteOptions(include_header=False)
    with db.cursor().copy(f"copy {table.name} ({columns}) from stdin (format csv)".encode()) as copy:
        for batch in source.con.sql(rows).to_arrow_reader(_BATCH):
            sink = pa.BufferOutputStream()
            pa_csv.write_csv(batch, sink, options)
            copy.write(sink.getvalue())


def _finish(db: "Connection", source: Source, written: dict[str, int]) -> None:
    """Write comments and record, and let the planner of Postgres know of the new rows."""
    _run(db, f"delete from {RECORD}")
    for table in source.tables:
        comments = [f"comment on table {table.name} is {quote(table.comment)}"]
        comments += [f'comment on column {table.name}."{c.name}" is {quote(c.comment)}' for c in table.columns]
        _run(db, ";".join(comments))
        if table.name in written:
            _run(db, f"analyze {table.name}")
        values = ", ".join(
            f"({quote(table.name)}, {'null' if part.migration is None else quote(part.migration)}, "
            f"{quote(part.content)}, {quote(table.shape)}, {part.rows})"
            for part in table.partitions
        )
        _run(db, f"insert into {RECORD} values {values}")
