"""What the sensor remembers of landing, and when a log that changed is taken in.

Looking is cheap: names, sizes and times of the files. Content is read only where these have changed and then
stayed the same from one look to the next. A log that never rests is taken in every so often all the same.
Starting runs is not decided here.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipelines.discovery import resolve_log
from pipelines.ingest.base import LogError
from pipelines.intake import content_hash
from pipelines.manifest import Manifest, ManifestError, RunEntry


@dataclass(frozen=True)
class Watched:
    """What is known of the logs of one migration.

    Attributes:
        seen: How the files looked last time.
        since: When a change was noticed that has not been taken in, in seconds since 1970; 0 where there is none.
        asked: When a run was last asked for, likewise.
        taken: How the files looked then.
        content: Hash of their content then.
    """

    seen: str = ""
    since: float = 0
    asked: float = 0
    taken: str = ""
    content: str = ""


@dataclass(frozen=True)
class Memory:
    """The cursor of the sensor.

    Attributes:
        asked: How many runs were asked for so far.
        migrations: What is known of each migration in landing.
    """

    asked: int = 0
    migrations: dict[str, Watched] = field(default_factory=dict)


@dataclass(frozen=True)
class Look:
    """What one look at landing found.

    Attributes:
        memory: What to remember.
        changed: Migrations to take in now.
        waiting: Migrations whose logs changed, but are still being written or were taken in a short while ago.
    """

    memory: Memory
    changed: tuple[str, ...]
    waiting: tuple[str, ...]

    @property
    def key(self) -> str:
        """A key of the change: the same where the same look is repeated, another one for every later change."""
        parts = [(name, self.memory.migrations[name].content) for name in self.changed]
        return hashlib.sha256(repr((self.memory.asked, parts)).encode()).hexdigest()[:16]


def read_memory(cursor: str | None) -> Memory:
    """Return what a cursor holds; nothing where there is none, or one that another release wrote."""
    try:
        data = json.loads(cursor or "")
        return Memory(data["asked"], {name: Watched(*row) for name, row in data["migrations"].items()})
    except (ValueError, KeyError, TypeError):
        return Memory()


def write_memory(memory: Memory) -> str:
    """Return the cursor that `read_memory` reads."""
    rows = {name: [w.seen, w.since, w.asked, w.taken, w.content] for name, w in memory.migrations.items()}
    return json.dumps({"asked": memory.asked, "migrations": rows}, separators=(",", ":"))


def look(manifests: Sequence[Manifest], memory: Memory, now: float, spacing: float) -> Look:
    """Compare the logs of the manifests with what is remembered of them.

    Args:
        manifests: The migrations in landing.
        memory: What the last look left.
        now: The time, in seconds since 1970.
        spacing: Seconds that lie between two runs for one migration, and after which a log that is still
            being written is taken in as it is.
    """
    watched: dict[str, Watched] = {}
    changed = []
    for manifest in manifests:
        name = manifest.migration
        before = memory.migrations.get(name, Watched())
        watched[name] = _compared(manifest, before, now, spacing)
        if watched[name].content != before.content:
            changed.append(name)
    waiting = tuple(name for name, one in watched.items() if one.since)
    return Look(Memory(memory.asked + bool(changed), watched), tuple(changed), waiting)


def _compared(manifest: Manifest, before: Watched, now: float, spacing: float) -> Watched:
    seen = _signature(manifest)
    if seen == before.taken:
        return replace(before, seen=seen, since=0)
    since = before.since or now
    is_at_rest = seen == before.seen or now - since >= spacing
    if not is_at_rest or now - before.asked < spacing:
        return replace(before, seen=seen, since=since)
    content = _content(manifest)
    asked = before.asked if content == before.content else now
    return Watched(seen=seen, since=0, asked=asked, taken=seen, content=content)


def _signature(manifest: Manifest) -> str:
    """Return a hash of the declared runs and of name, size and time of every file of their logs."""
    lines = [repr((manifest.recipe, manifest.runs))]
    for entry in manifest.runs:
        try:
            for file in _files(resolve_log(manifest, entry)):
                stat = file.stat()
                lines.append(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}")
        except (ManifestError, OSError) as error:
            lines.append(str(error))
    return _hash("\n".join(lines))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file())
        else:
            yield path


def _content(manifest: Manifest) -> str:
    """Return a hash of the declared runs and of what their logs hold."""
    parts = [_content_of_run(manifest, entry) for entry in manifest.runs]
    return _hash(repr((manifest.recipe, manifest.runs, parts)))


def _content_of_run(manifest: Manifest, entry: RunEntry) -> str:
    try:
        return content_hash(resolve_log(manifest, entry), entry.columns)
    except (ManifestError, LogError, OSError) as error:
        return str(error)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
