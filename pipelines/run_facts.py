"""What log and manifest tell of a run besides its points, as the lake keeps it, and where the two disagree."""

import re
from collections.abc import Mapping
from pathlib import Path

from pipelines.ingest.redaction import redact
from warehouse.lake import Component, RunRecord

# Facts of the recipe that a log may tell.
TOLD = ("model", "seed")
# How the facts that logs tell are named as components: kind, and name where the fact is a version.
_COMPONENTS: Mapping[str, tuple[str, str]] = {
    "accelerator": ("hardware", ""),
    "driver": ("driver", "driver"),
    "cuda": ("compute_stack", "CUDA"),
    "cann": ("compute_stack", "CANN"),
    "rocm": ("compute_stack", "ROCm"),
    "verl": ("framework", "verl"),
    "trl": ("framework", "trl"),
    "rollout_engine": ("rollout_engine", ""),
    "vllm": ("rollout_engine", "vllm"),
    "sglang": ("rollout_engine", "sglang"),
    "vllm_ascend": ("library", "vllm_ascend"),
    "attention_kernel": ("attention_kernel", ""),
    "collectives": ("collectives", ""),
    "precision": ("precision", ""),
    "torch": ("library", "torch"),
    "torch_npu": ("library", "torch_npu"),
    "transformers": ("library", "transformers"),
    "deterministic": ("switch", "deterministic"),
}


def components_of(metadata: Mapping[str, str]) -> tuple[Component, ...]:
    """Return the components that the facts of a log name, one for each fact that is one."""
    found = []
    for key, value in sorted(metadata.items()):
        kind, name = _COMPONENTS.get(key, ("", ""))
        # An engine whose version is told needs no second row with its bare name.
        if kind and not (not name and value in metadata):
            found.append(Component(kind, name or value, value if name else ""))
    return tuple(found)


def conflicts(run: RunRecord) -> list[str]:
    """Return a sentence for each kind of component on which manifest and log disagree."""
    sentences = []
    for stated in run.components:
        told = [c for c in run.found if c.kind == stated.kind]
        if told and not any(_agree(stated, c) for c in told):
            names = ", ".join(f"{c.name} {c.version}".strip() for c in told)
            says = f"{stated.name} {stated.version}".strip()
            sentences.append(f"{run.name}: the manifest says {stated.kind} {says}, the log {names}; the manifest wins.")
    return sentences


def _agree(stated: Component, told: Component) -> bool:
    a, b = stated.name.casefold(), told.name.casefold()
    same_version = not stated.version or not told.version or stated.version == told.version
    return (a in b or b in a) and same_version


_HOME = re.compile(r"^(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\]+")


def source_of(log: str, folder: Path) -> str:
    """Return where a log lies, as it may be told: relative to its manifest, or without the name of a user.

    Args:
        log: Path or pattern, as the manifest has it.
        folder: The manifest's folder.
    """
    path = Path(log)
    if path.is_absolute() and path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return redact(_HOME.sub("~", log))


def recipe_of(stated: Mapping[str, str]) -> dict[str, str]:
    """Return a stated recipe as it may be told: of a path only the last part, and no address or credential."""
    return {key: redact(_last_part(value)) for key, value in stated.items()}


def _last_part(value: str) -> str:
    return Path(value).name if value.startswith(("/", "~")) else value
