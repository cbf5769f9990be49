"""Facts about a run that its log or the files beside it tell: hardware and software, by allow-list.

A value enters only under one of the keys of `ALLOWED`, and only if it looks like a name, a version or a
number: addresses, paths, hosts, tokens and anything long are refused. Environments, command lines, users and
e-mail addresses are never read. What the manifest says wins over what is found here.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pipelines.ingest.protowire import BYTES, as_bytes, as_int, fields

ALLOWED = frozenset(
    {
        "accelerator",
        "accelerator_count",
        "attention_kernel",
        "cann",
        "collectives",
        "config_hash",
        "cuda",
        "deterministic",
        "driver",
        "framework_version",
        "model",
        "precision",
        "python",
        "rocm",
        "rollout_engine",
        "seed",
        "sglang",
        "torch",
        "torch_npu",
        "transformers",
        "trl",
        "verl",
        "vllm",
        "vllm_ascend",
    }
)
"""Every key that may leave this module."""

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()/:,-]{0,79}")
_UNSAFE = re.compile(
    r"@|://|\\|(?:^|\s)/|\.\.|(?i:\b(?:sk|hf|ghp|gho|glpat|xox[abp]|akia|wandb_v1)[-_][A-Za-z0-9]{6,}|"
    r"passw|secret|token|bearer|api[-_]?key)|[A-Za-z0-9+/_-]{28,}"
)
_PRIVATE_KEY = re.compile(r"(?i)pass|secret|token|key|host|user|owner|mail|path|dir|addr|url")
_CONFIG_KEYS = {
    "seed": ("seed", "trainer.seed", "data.seed", "actor_rollout_ref.actor.data_loader_seed"),
    "attention_kernel": ("attn_implementation", "attention_backend", "attention_kernel"),
    "precision": ("dtype", "torch_dtype", "precision", "actor_rollout_ref.rollout.dtype"),
    "rollout_engine": ("rollout.name", "actor_rollout_ref.rollout.name", "rollout_engine"),
    "accelerator": ("trainer.device", "device", "accelerator"),
    "deterministic": ("full_determinism", "deterministic"),
    "model": ("model", "model_name", "actor_rollout_ref.model.path", "model_name_or_path"),
}
_MOST_ENTRIES, _MOST_DEPTH = 100_000, 50
_PACKAGES = {
    "torch": "torch",
    "torch-npu": "torch_npu",
    "vllm": "vllm",
    "vllm-ascend": "vllm_ascend",
    "sglang": "sglang",
    "transformers": "transformers",
    "trl": "trl",
    "verl": "verl",
}
_ENV_KEYS = {
    "CUDA_VERSION": "cuda",
    "ROCM_VERSION": "rocm",
    "ASCEND_TOOLKIT_VERSION": "cann",
    "CANN_VERSION": "cann",
    "VLLM_VERSION": "vllm",
    "XTUNER_DETERMINISTIC": "deterministic",
    "HCCL_DETERMINISTIC": "deterministic",
}


def safe(value: Any) -> str | None:
    """Return a value as text if it is harmless, else None.

    Args:
        value: A name, a version, a number or a boolean.
    """
    if isinstance(value, bool | int | float):
        return str(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text if _SAFE.fullmatch(text) and not _UNSAFE.search(text) else None


def keep(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the allowed keys of `found` whose values are harmless."""
    kept = {key: safe(value) for key, value in found.items() if key in ALLOWED}
    return {key: value for key, value in kept.items() if value is not None}


def from_config(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what a run's configuration tells, with a hash of its harmless rest.

    Args:
        config: Nested or with dotted keys; verl's Hydra configuration, wandb's or SwanLab's, MLflow's parameters.
    """
    flat = dict(_flatten(config))
    found: dict[str, Any] = {}
    for key, names in _CONFIG_KEYS.items():
        value = next((flat[name] for name in names if name in flat), None)
        found[key] = value.rsplit("/", 1)[-1] if key == "model" and isinstance(value, str) else value
    harmless = sorted(
        (key, text) for key, value in flat.items() if not _PRIVATE_KEY.search(key) and (text := safe(value)) is not None
    )
    if harmless:
        digest = hashlib.sha256(json.dumps(harmless).encode())
        found["config_hash"] = digest.hexdigest()[:16]
    return keep(found)


def _flatten(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # YAML's aliases make a few lines a tree of any size: what is looked at has an end.
    open_mappings, left = [("", iter(config.items()))], _MOST_ENTRIES
    while open_mappings and left:
        left -= 1
        prefix, entries = open_mappings[-1]
        entry = next(entries, None)
        if entry is None:
            open_mappings.pop()
            continue
        key, value = entry
        if isinstance(value, Mapping) and "value" in value and set(value) <= {"desc", "value", "sort"}:
            value = value["value"]
        if isinstance(value, Mapping):
            if len(open_mappings) < _MOST_DEPTH:
                open_mappings.append((f"{prefix}{key}.", iter(value.items())))
        elif not str(key).startswith("_"):
            yield f"{prefix}{key}", value


def beside(folder: Path) -> dict[str, str]:
    """Return what lies in the usual places below the folder of a run: Hydra's, XTuner's and the trackers'."""
    found: dict[str, str] = {}
    for place in (folder / ".hydra", folder / "logs", folder / "files", folder):
        found |= from_folder(place)
    return found


def from_folder(folder: Path) -> dict[str, str]:
    """Return what the files of a tracker's folder tell; absent or damaged files tell nothing."""
    found: dict[str, str] = {}
    for name, reader in _FILES.items():
        file = folder / name
        try:
            if file.is_file():
                found |= reader(file.read_text("utf-8", "replace"))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError):
            continue
    return found


def from_requirements(text: str) -> dict[str, str]:
    """Return the versions of the packages that matter, from lines like `torch==2.9.0`."""
    lines = (line.strip().partition("==") for line in text.splitlines())
    return keep({_PACKAGES[name.lower()]: version for name, _, version in lines if name.lower() in _PACKAGES})


def from_wandb_metadata(text: str) -> dict[str, str]:
    """Return the hardware of wandb-metadata.json."""
    data = json.loads(text)
    return keep(
        {
            "accelerator": data.get("gpu"),
            "accelerator_count": data.get("gpu_count"),
            "cuda": data.get("cudaVersion"),
            "python": str(data.get("python", "")).removeprefix("CPython "),
        }
    )


def from_swanlab_metadata(text: str) -> dict[str, str]:
    """Return the hardware of swanlab-metadata.json."""
    data = json.loads(text)
    vendors = [v for v in (data.get("hardware") or {}).get("accelerators") or [] if isinstance(v, dict)]
    found: dict[str, Any] = {"python": (data.get("runtime") or {}).get("python_version")}
    if vendors:
        first = vendors[0]
        devices = first.get("devices") or []
        found["accelerator"] = devices[0].get("name") if devices else first.get("vendor")
        found["accelerator_count"] = len(devices) or None
        found["driver"] = first.get("version")
        found["cuda"], found["cann"] = first.get("cuda_version"), first.get("cann_version")
    return keep(found)


def from_environment_dump(text: str) -> dict[str, str]:
    """Return the few allowed switches of XTuner's env.json; the rest of the environment is not looked at."""
    data = json.loads(text)
    found: dict[str, Any] = {
        key: data[variable] for variable, key in _ENV_KEYS.items() if isinstance(data.get(variable), str)
    }
    for engine in ("VLLM", "SGLANG", "LMDEPLOY"):
        if str(data.get(f"XTUNER_USE_{engine}", "0")) == "1":
            found["rollout_engine"] = engine.lower()
    return keep(found)


def from_wandb_environment(record: bytes) -> dict[str, str]:
    """Return the hardware of the environment record of a wandb log."""
    found: dict[str, Any] = {}
    for number, kind, content in fields(record):
        if number == 2 and kind == BYTES:
            found["python"] = as_bytes(content).decode("utf-8", "replace").removeprefix("CPython ")
        elif number == 18 and kind == BYTES:
            found["accelerator"] = as_bytes(content).decode("utf-8", "replace")
        elif number == 19 and kind != BYTES:
            found["accelerator_count"] = as_int(content)
        elif number == 25 and kind == BYTES:
            found["cuda"] = as_bytes(content).decode("utf-8", "replace")
    return keep(found)


_FILES = {
    "requirements.txt": from_requirements,
    "wandb-metadata.json": from_wandb_metadata,
    "swanlab-metadata.json": from_swanlab_metadata,
    "config.yaml": lambda text: from_config(yaml.safe_load(text) or {}),
    "env.json": from_environment_dump,
}
