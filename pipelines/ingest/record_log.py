"""Giving the records of a LevelDB log to a reader, window by window.

Here belongs what wandb's and SwanLab's logs share besides their framing.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.leveldb_log import FILE_HEADER, Record, records
from pipelines.ingest.protowire import WireError
from pipelines.ingest.sources import settled, windows


def read_records(
    log: LogFile,
    draft: Draft,
    take: Callable[[bytes, tuple[str, int]], None],
    state: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[Draft]:
    """Give the records of a file to a reader, and yield its draft where all that it holds is settled.

    Args:
        log: The file.
        draft: What the reader fills; damaged pieces become its issues.
        take: Called with content and place of each sound record.
        state: Called for what the reader must know to go on.
    """
    begin = max(log.since.offset, FILE_HEADER)
    for window in windows(replace(log, since=replace(log.since, offset=begin))):
        found = records(window.data, window.base, is_last=window.is_last)
        window.used = found.settled - window.base
        for record in found.records:
            _take_one(log, draft, record, take)
        yield settled(draft, window, 0, state())
        for record in found.tail:
            _take_one(log, draft, record, take)


def _take_one(log: LogFile, draft: Draft, record: Record, take: Callable[[bytes, tuple[str, int]], None]) -> None:
    place = (log.source, record.offset)
    if record.payload is None:
        draft.issue(place, f"{record.problem} ({record.size} bytes left out)")
        return
    try:
        take(record.payload, place)
    except (WireError, ValueError, struct.error) as error:
        draft.issue(place, f"a sound record holds nothing readable ({type(error).__name__})")
