"""What every log reader shares: the result it returns and the helpers that build it.

Here belong `RunLog`, `ParseIssue`, the reader's protocol, and the making of point tables. A format's own
rules do not belong here: each format has a file of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from pipelines.ingest.arrow_columns import numbers, texts
from warehouse.contract import DEFAULT_STEP_AXIS, ISSUE_SCHEMA, POINT_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipelines.ingest.draft import Draft, LogFile

SNIPPET_CHARS = 200


class LogError(Exception):
    """A log can't be read at all; the message names the file, the place, the fault and the remedy."""


class ClosedLogError(LogError):
    """A file or folder is a log or may be one, and can't be opened."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> "ClosedLogError":
        """Return the error for a file or folder that the system does not let us open."""
        return cls(f"{path}: this can't be opened ({error.strerror}); make it readable, or move it away")


@dataclass(frozen=True)
class ParseIssue:
    """A piece of a log that could not be read.

    Attributes:
        source_file: The file, relative to the run's log.
        source_position: Line (from 1) of a text file, byte offset of a binary one.
        reason: What is wrong, in a short sentence.
        snippet: The beginning of the piece, at most 200 characters.
        lost_points: How many points were quarantined with it; None where that can't be known.
    """

    source_file: str
    source_position: int
    reason: str
    snippet: str = ""
    lost_points: int | None = None


@dataclass(frozen=True)
class RunLog:
    """One run as its log tells it.

    Attributes:
        log_format: The reader's name.
        points: A table of `POINT_SCHEMA`.
        log_precision: One of `warehouse.contract.LOG_PRECISIONS`.
        framework: The framework that wrote the log, as far as the log shows it ("xtuner", "verl", ...),
            else an empty string.
        metadata: Facts about the run found in the log, by allow-listed key.
        issues: What could not be read.
        status: "finished", "running", "crashed", or "unknown".
    """

    log_format: str
    points: pa.Table
    log_precision: str = "float64"
    framework: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[ParseIssue, ...] = ()
    status: str = "unknown"


class Reader(Protocol):
    """What a log format provides; a module of `pipelines.ingest` with these three names is a reader.

    It may have more. `files(path)` returns the files of a run that is a folder, in the order of reading;
    `units(path)` what `scan` takes, where that is not a file; `proof(log)` what the part of a store before a mark is
    recognised by, where its bytes don't tell; `label(path)` how a file is named, where its path tells too much.
    """

    NAME: str

    def sniff(self, path: Path) -> bool:
        """Tell by content whether `path` (a file or a folder) holds this format."""
        ...

    def scan(self, log: "LogFile") -> "Iterator[Draft]":
        """Read a file, in the order of writing, from the mark of `log` on.

        The draft is yielded every few hundred thousand points, and at least once. A yield behind `Draft.settle` says
        that all that was found is there for good and that a later pass can begin there. What is added behind the last
        yield is provisional: it is read again once the file has grown. A reader that never settles is read whole.

        Raises:
            LogError: If nothing of it can be read.
        """
        ...


def begins_late(first_step: int, second_step: int) -> bool:
    """Tell whether a log with these two lowest steps lacks its beginning: more than one interval came before it."""
    return second_step > first_step > max(1, second_step - first_step)


def issues_table(issues: Sequence[ParseIssue]) -> pa.Table:
    """Return issues as a table of `ISSUE_SCHEMA`."""
    lost = np.array([-1 if i.lost_points is None else i.lost_points for i in issues], dtype=np.int64)
    columns = [
        texts([i.source_file for i in issues]),
        numbers(np.array([i.source_position for i in issues], dtype=np.int64), pa.int64()),
        texts([i.reason for i in issues]),
        texts([i.snippet[:SNIPPET_CHARS] for i in issues]),
        numbers(lost, pa.int64(), lost < 0),
    ]
    return pa.table(columns, schema=ISSUE_SCHEMA)


def point_table(frame: "pl.DataFrame") -> pa.Table:
    """Complete, number and sort points.

    Args:
        frame: One row a write, in the order of writing. Needs `metric_name`, `step`, `value`,
            `source_file` and `source_position`; `step_axis`, `attempt`, `value_kind`, `raw_text` and
            `wall_time` are filled in where absent.

    Returns:
        A table of `POINT_SCHEMA`, with `write_no` counted in the order of writing.
    """
    import polars as pl  # a reader that fills a `Draft` does without

    defaults = {
        "step_axis": pl.lit(DEFAULT_STEP_AXIS),
        "attempt": pl.lit(1, dtype=pl.Int32),
        "value_kind": (
            pl.when(pl.col("value").is_null())
            .then(pl.lit("nonfinite_unknown"))
            .when(pl.col("value").is_nan())
            .then(pl.lit("nan"))
            .when(pl.col("value") == float("inf"))
            .then(pl.lit("pos_inf"))
            .when(pl.col("value") == float("-inf"))
            .then(pl.lit("neg_inf"))
            .otherwise(pl.lit("finite"))
        ),
        "raw_text": pl.lit(None, dtype=pl.String),
        "wall_time": pl.lit(None, dtype=pl.Float64),
    }
    key = ["metric_name", "step_axis", "attempt", "step"]
    done = (
        frame.with_columns(pl.col("value").cast(pl.Float64))
        .with_columns(**{name: expr for name, expr in defaults.items() if name not in frame.columns})
        .with_columns(write_no=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(key))
        .sort([*key, "write_no"])
        .select(POINT_SCHEMA.names)
    )
    return done.to_arrow().cast(POINT_SCHEMA)
