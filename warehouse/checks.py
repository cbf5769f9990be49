"""Checks as SQL: each file of sql/checks is a SELECT whose rows are failures.

The header of a file says what it checks, `-- severity: error` or `warn`, and `-- blocking: true` where
nothing may be published while it fails.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

_HEADER = re.compile(r"^--\s*(severity|blocking)\s*:\s*(\S+)\s*$")
SAMPLE_ROWS = 5


class CheckFileError(ValueError):
    """A check file is not one; the message names the file and the remedy."""


@dataclass(frozen=True)
class Check:
    """One file of sql/checks.

    Attributes:
        name: The file's stem.
        description: What must hold.
        severity: "error" or "warn".
        is_blocking: Nothing is published while it fails.
        sql: The SELECT; each row that it returns is a failure.
        path: The file.
    """

    name: str
    description: str
    severity: str
    is_blocking: bool
    sql: str
    path: Path


@dataclass(frozen=True)
class CheckOutcome:
    """What a check found: how many failures, their columns, and the first few rows."""

    check: Check
    failure_count: int
    columns: tuple[str, ...]
    sample: tuple[tuple, ...]

    @property
    def passed(self) -> bool:
        """Whether the check found no failure."""
        return self.failure_count == 0


def load_checks(folder: Path) -> list[Check]:
    """Read every check of a folder.

    Raises:
        CheckFileError: If a header lacks its description or has an unknown severity.
    """
    return [_read_check(path) for path in sorted(folder.glob("*.sql"))]


def _read_check(path: Path) -> Check:
    text = path.read_text(encoding="utf-8")
    header = {}
    sentences = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        matched = _HEADER.match(line)
        if matched:
            header[matched[1]] = matched[2]
        else:
            sentences.append(line.removeprefix("--").strip())
    if not sentences:
        raise CheckFileError(f"{path}: the first line must be a comment that says what must hold.")
    if header.get("severity") not in ("error", "warn"):
        raise CheckFileError(f"{path}: the header needs `-- severity: error` or `-- severity: warn`.")
    return Check(
        name=path.stem,
        description=" ".join(sentences),
        severity=header["severity"],
        is_blocking=header.get("blocking") == "true",
        sql=text.strip().rstrip(";"),
        path=path,
    )


def run_check(con: duckdb.DuckDBPyConnection, check: Check) -> CheckOutcome:
    """Run one check and return what it found."""
    relation = con.sql(check.sql)
    columns = tuple(relation.columns)
    sample = con.execute(f"select *, count(*) over () from ({check.sql}\n) limit {SAMPLE_ROWS}").fetchall()
    count = sample[0][-1] if sample else 0
    return CheckOutcome(check, count, columns, tuple(row[:-1] for row in sample))


def run_checks(con: duckdb.DuckDBPyConnection, checks: Iterable[Check]) -> list[CheckOutcome]:
    """Run checks in order."""
    return [run_check(con, check) for check in checks]
