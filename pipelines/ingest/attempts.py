"""The attempts of a run and the numbers of its writes, found batch by batch.

Here belongs the rule that tells a restart from a rewound step, and what must be remembered of the points before a
batch so that the numbers are those of reading all points at once.

A new attempt begins where a metric is written again at a step that it had already reached, and the axis as a whole has
moved back too: a late evaluation row, or a second row of the same step, is no restart. A later file, or another
process, that repeats steps is a later attempt from its first point on. Attempts may therefore begin before the point
that shows them: at the first point of its step or of its file, which may have been numbered with an earlier batch.
Such a beginning is reported as `Backdated`.

Within an attempt the steps of a metric never fall, so all that must be known of the past is the last write of each
metric.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from pipelines.ingest.base import begins_late
from pipelines.ingest.draft import Batch, Draft
from warehouse.contract import DEFAULT_STEP_AXIS

_STEP, _ORDINAL, _SESSION, _ATTEMPT, _WRITE_NO = range(5)


class Backdated(NamedTuple):
    """Points of earlier batches belong to the next attempt: those of an axis from this place of a file on."""

    axis: str
    source_file: str
    position: int


class Numbered(NamedTuple):
    """The numbers of a batch's points, all of shape (n,).

    Attributes:
        name, axis: Codes in the tables of the run.
        order: The order by metric, axis, attempt, step and write, as indices into the batch.
        attempt, write_no: In the order of the batch, from 1.
        backdated: What changes for points of earlier batches, one after the other.
    """

    name: np.ndarray
    axis: np.ndarray
    order: np.ndarray
    attempt: np.ndarray
    write_no: np.ndarray
    backdated: list[Backdated]


@dataclass
class _Axis:
    """What is remembered of one step axis.

    A block is a stretch of points of one step, a session one that a process wrote into one file; points are counted
    over the whole run, in the order of writing.
    """

    attempt: int = 1
    start: int = 0  # count at the first point of the attempt
    highest: int = 0  # step reached in the attempt
    step: int = 0  # of the last point
    session: int = -1
    block: int = 0  # count at its first point
    block_file: str = ""
    block_position: int = 0
    begin: int = 0  # of the session on this axis
    begin_file: str = ""
    begin_position: int = 0
    session_highest: int = 0
    lowest: tuple[int, ...] = ()  # the two lowest steps


class Numbering:
    """What is remembered of the points of a run; numbers the next ones.

    Attributes:
        names, axes: Codes of metrics and step axes, by their first appearance.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.axes: dict[str, int] = {DEFAULT_STEP_AXIS: 0}
        self._count = 0
        self._session = 0
        self._file = ""
        self._axis: dict[int, _Axis] = {}
        self._last = np.full((5, 0, 1), -1, dtype=np.int64)

    @property
    def beginnings(self) -> dict[str, tuple[int, ...]]:
        """The two lowest steps of each step axis."""
        axes = list(self.axes)
        return {axes[code]: axis.lowest for code, axis in self._axis.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return all that is remembered, fit for JSON."""
        used = np.argwhere(self._last[_ORDINAL] >= 0)
        return {
            "names": list(self.names),
            "axes": list(self.axes),
            "count": self._count,
            "session": self._session,
            "file": self._file,
            "axis": {str(code): asdict(axis) for code, axis in self._axis.items()},
            "last": [[int(n), int(a), *self._last[:, n, a].tolist()] for n, a in used],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Numbering":
        """Return what `as_dict` gave."""
        out = cls()
        out.names = {name: code for code, name in enumerate(data["names"])}
        out.axes = {axis: code for code, axis in enumerate(data["axes"])}
        out._count, out._session, out._file = data["count"], data["session"], data["file"]
        out._axis = {int(code): _Axis(**axis) for code, axis in data["axis"].items()}
        out._grow()
        for name, axis, *last in data["last"]:
            out._last[:, name, axis] = last
        return out

    def number(self, batch: Batch, draft: Draft) -> Numbered:
        """Number the points of a batch and remember them.

        Args:
            batch: The next points of the run.
            draft: Whose tables its codes belong to.
        """
        name, axis = _recoded(batch.name, draft.names, self.names), _recoded(batch.axis, draft.axes, self.axes)
        self._grow()
        files = list(draft.files)
        session = self._sessions(batch, files)
        order, new_series = self._order(name, axis)
        again = self._written_again(batch.step, name, axis, session, order, new_series)
        attempt = np.ones(len(name), dtype=np.int32)
        backdated: list[Backdated] = []
        for code in np.unique(axis).tolist():
            rows = slice(None) if (axis == code).all() else np.flatnonzero(axis == code)
            points = _Points(
                self._count + np.arange(len(name))[rows],
                batch.step[rows],
                session[rows],
                batch.file[rows],
                batch.position[rows],
            )
            attempt[rows] = self._number_axis(code, points, again, files, backdated)
        write_no = np.ones(len(name), dtype=np.int32)
        if len(again.at):
            write_no = self._write_numbers(batch.step, name, axis, attempt, order, new_series)
        self._remember(batch.step, name, axis, session, attempt, write_no, order, new_series)
        return Numbered(name, axis, order, attempt, write_no, backdated)

    def _grow(self) -> None:
        _, names, axes = self._last.shape
        more = (0, 0), (0, len(self.names) - names), (0, len(self.axes) - axes)
        if any(b for _, b in more):
            self._last = np.pad(self._last, more, constant_values=-1)

    def _sessions(self, batch: Batch, files: list[str]) -> np.ndarray:
        """Number the stretches that one process wrote into one file."""
        count = len(batch.file)
        new = np.zeros(count, dtype=np.int64)
        if count:
            new[1:] = batch.file[1:] != batch.file[:-1]
            new[0] = self._file != files[batch.file[0]]
            self._file = files[batch.file[-1]]
        inside = [at for at in batch.process_starts if at < count]
        new[inside] = 1
        session = self._session + np.cumsum(new)
        behind = len(batch.process_starts) > len(inside)
        self._session = (int(session[-1]) if count else self._session) + behind
        return session

    def _order(self, name: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the order by metric and axis, equal ones as written, and where in it a series begins."""
        series = _ranks(self.names)[name]
        if len(self.axes) > 1:
            series = series * len(self.axes) + _ranks(self.axes)[axis]
        order = _stable_order(series)
        ordered = series[order]
        new = np.ones(len(name), dtype=bool)
        new[1:] = ordered[1:] != ordered[:-1]
        return order, new

    def _written_again(
        self,
        step: np.ndarray,
        name: np.ndarray,
        axis: np.ndarray,
        session: np.ndarray,
        order: np.ndarray,
        new_series: np.ndarray,
    ) -> "_Again":
        """Return the points whose metric had reached their step before; in most batches there are none."""
        steps = step[order]
        falls = np.zeros(len(order), dtype=bool)
        falls[1:] = (steps[1:] <= steps[:-1]) & ~new_series[1:]
        begins = np.flatnonzero(new_series)
        firsts = order[begins]
        last = self._last[:, name[firsts], axis[firsts]]
        back = (last[_ORDINAL] >= 0) & (steps[begins] <= last[_STEP])

        later = np.flatnonzero(falls)
        at = np.r_[firsts[back], order[later]]
        count = np.r_[last[_ORDINAL][back], self._count + order[later - 1]]
        sessions = np.r_[last[_SESSION][back], session[order[later - 1]]]
        by_count = np.argsort(at)
        return _Again(self._count + at[by_count], count[by_count], sessions[by_count])

    def _number_axis(
        self, code: int, points: "_Points", again: "_Again", files: list[str], backdated: list[Backdated]
    ) -> "np.ndarray | int":
        """Return the attempts of the points on one axis."""
        count, step, session = points.at, points.step, points.session
        known = self._axis.get(code)
        here = known or _Axis(highest=int(step[0]), start=int(count[0]))
        self._axis[code] = here
        new_session = np.r_[known is None or session[0] != here.session, session[1:] != session[:-1]]
        new_block = np.r_[step[0] != here.step, step[1:] != step[:-1]] | new_session
        starts, seen, highest = [here.start], 0, here.highest
        for at, last_count, last_session in _candidates(again, points):
            # Blocks and sessions that began before this batch are known by their first point.
            block = _begin(new_block, at, count, here.block)
            if last_count < starts[-1] or last_count >= block:
                continue
            highest = max(highest, int(step[seen : at + 1].max()))
            seen = at
            other_file = session[at] != last_session
            if not (step[at] < highest or other_file):
                continue
            starts.append(_begin(new_session, at, count, here.begin) if other_file else block)
            if starts[-1] < count[0]:
                place = (here.begin_file, here.begin_position) if other_file else (here.block_file, here.block_position)
                backdated.append(Backdated(list(self.axes)[code], *place))
                self._last[_ATTEMPT, :, code] += self._last[_ORDINAL, :, code] >= starts[-1]
                seen, highest = 0, here.session_highest if other_file else here.step
            else:
                seen = int(np.searchsorted(count, starts[-1]))
                highest = int(step[seen])

        attempt: np.ndarray | int = here.attempt
        if len(starts) > 1:
            attempt = here.attempt + np.searchsorted(np.asarray(starts[1:], dtype=np.int64), count, side="right")
        here.attempt += len(starts) - 1
        if len(here.lowest) < 2 or step.min() < here.lowest[1]:
            here.lowest = tuple(sorted({*here.lowest, *np.unique(step)[:2].tolist()})[:2])
        here.start, here.highest = starts[-1], max(highest, int(step[seen:].max()))
        _move_on(here, points, new_block, new_session, files)
        return attempt

    def _write_numbers(
        self,
        step: np.ndarray,
        name: np.ndarray,
        axis: np.ndarray,
        attempt: np.ndarray,
        order: np.ndarray,
        new_series: np.ndarray,
    ) -> np.ndarray:
        """Count the writes of a metric at one step in one attempt; they follow each other among its writes."""
        steps, attempts_ = step[order], attempt[order]
        new = new_series.copy()
        new[1:] |= (steps[1:] != steps[:-1]) | (attempts_[1:] != attempts_[:-1])
        index = np.arange(len(order))
        start = np.maximum.accumulate(np.where(new, index, 0))
        number = index - start + 1
        firsts = np.flatnonzero(new_series)
        last = self._last[:, name[order[firsts]], axis[order[firsts]]]
        goes_on = (last[_ORDINAL] >= 0) & (last[_STEP] == steps[firsts]) & (last[_ATTEMPT] == attempts_[firsts])
        if goes_on.any():
            more = np.zeros(len(order), dtype=np.int64)
            more[firsts[goes_on]] = last[_WRITE_NO][goes_on]
            number = number + more[start]
        out = np.empty(len(order), dtype=np.int32)
        out[order] = number
        return out

    def _remember(
        self,
        step: np.ndarray,
        name: np.ndarray,
        axis: np.ndarray,
        session: np.ndarray,
        attempt: np.ndarray,
        write_no: np.ndarray,
        order: np.ndarray,
        new_series: np.ndarray,
    ) -> None:
        ends = order[np.r_[new_series[1:], True]] if len(order) else order
        columns = (step[ends], self._count + ends, session[ends], attempt[ends], write_no[ends])
        for row, values in enumerate(columns):
            self._last[row, name[ends], axis[ends]] = values
        self._count += len(order)


def late_beginnings(logs: Sequence[Mapping[str, tuple[int, ...]]]) -> dict[str, int]:
    """Return the step axes whose first steps are in no log of a run, with the lowest step of each.

    Args:
        logs: The two lowest steps of each step axis, for each log.
    """
    lowest: dict[str, set[int]] = {}
    for beginnings in logs:
        for axis, steps in beginnings.items():
            lowest.setdefault(axis, set()).update(steps)
    return {
        axis: first
        for axis, (first, second) in ((a, sorted(steps)[:2]) for a, steps in lowest.items() if len(steps) > 1)
        if begins_late(first, second)
    }


class _Points(NamedTuple):
    """Points of a batch on one axis: their number in the run, step, session and place, each of shape (n,)."""

    at: np.ndarray
    step: np.ndarray
    session: np.ndarray
    file: np.ndarray
    position: np.ndarray


class _Again(NamedTuple):
    """Points whose metric had reached their step before, by their count; count and session of the write before."""

    at: np.ndarray
    last_count: np.ndarray
    last_session: np.ndarray


def _candidates(again: _Again, points: _Points) -> Iterator[tuple[int, int, int]]:
    """Yield those of an axis, as its index, with count and session of the write before."""
    if not len(again.at):
        return
    at = np.searchsorted(points.at, again.at)
    here = (at < len(points.at)) & (points.at[np.minimum(at, len(points.at) - 1)] == again.at)
    yield from zip(at[here].tolist(), again.last_count[here].tolist(), again.last_session[here].tolist(), strict=True)


def _begin(new: np.ndarray, at: int, count: np.ndarray, before: int) -> int:
    """Return the count at the first point of the stretch that a point lies in."""
    while at >= 0 and not new[at]:
        at -= 1
    return int(count[at]) if at >= 0 else before


def _move_on(here: _Axis, points: _Points, new_block: np.ndarray, new_session: np.ndarray, files: list[str]) -> None:
    """Remember the last block and the last session of a batch."""
    if new_session.any():
        at = len(new_session) - 1 - int(np.argmax(new_session[::-1]))
        here.begin, here.begin_file = int(points.at[at]), files[points.file[at]]
        here.begin_position, here.session_highest = int(points.position[at]), int(points.step[at:].max())
    else:
        here.session_highest = max(here.session_highest, int(points.step.max()))
    if new_block.any():
        at = len(new_block) - 1 - int(np.argmax(new_block[::-1]))
        here.block, here.block_file = int(points.at[at]), files[points.file[at]]
        here.block_position = int(points.position[at])
    here.step, here.session = int(points.step[-1]), int(points.session[-1])


def _recoded(codes: np.ndarray, table: Mapping[str, int], known: dict[str, int]) -> np.ndarray:
    """Return codes of one table as those of another, which takes up what it does not know."""
    mapped = np.asarray([known.setdefault(text, len(known)) for text in table], dtype=np.int32)
    return codes if (mapped == np.arange(len(mapped))).all() else mapped[codes]


def _ranks(table: Mapping[str, int]) -> np.ndarray:
    ranks = np.empty(len(table), dtype=np.int64)
    ranks[[table[text] for text in sorted(table)]] = np.arange(len(table))
    return ranks


def _stable_order(codes: np.ndarray) -> np.ndarray:
    """Return the order of small codes, equal ones as they stand; codes of 16 bits are sorted in linear time."""
    small = codes.astype(np.uint16) if len(codes) and codes.max() < 1 << 16 else codes
    return np.argsort(small, kind="stable")
