"""Facts about a run come in by allow-list, and secrets don't come in at all."""

import json
from pathlib import Path

import pytest

from pipelines.ingest import metadata, tensorboard
from pipelines.ingest.redaction import outline, redact
from pipelines.ingest.registry import read_log
from tests.ingest import encode

SECRETS = {
    "api_key": "sk-planted-0123456789abcdef",
    "owner": "planted.person@example.com",
    "host": "planted-host-17.internal",
    "path": "/srv/planted/models/tiny",
    "address": "https://planted:pw@planted.example.com/x",
}


def told(found: object) -> str:
    return repr(found)


def test_config_is_allow_listed() -> None:
    config = {
        "seed": 7,
        "actor_rollout_ref": {"rollout": {"name": "vllm"}, "model": {"path": "/srv/planted/models/Qwen2-7B"}},
        "trainer": {"device": "npu"},
        **SECRETS,
        "attn_implementation": SECRETS["api_key"],
        "precision": SECRETS["owner"],
    }
    found = metadata.from_config(config)
    assert found.pop("config_hash")
    assert found == {"seed": "7", "rollout_engine": "vllm", "accelerator": "npu", "model": "Qwen2-7B"}


def test_config_hash_does_not_know_the_secrets() -> None:
    assert metadata.from_config({"seed": 7, **SECRETS}) == metadata.from_config({"seed": 7})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "wandb-metadata.json",
            json.dumps(
                {
                    "gpu": "NVIDIA L4",
                    "gpu_count": 8,
                    "cudaVersion": "12.4",
                    "python": "CPython 3.11.7",
                    "email": SECRETS["owner"],
                    "host": SECRETS["host"],
                    "args": ["--key", SECRETS["api_key"]],
                }
            ),
            {"accelerator": "NVIDIA L4", "accelerator_count": "8", "cuda": "12.4", "python": "3.11.7"},
        ),
        (
            "swanlab-metadata.json",
            json.dumps(
                {
                    "hardware": {
                        "accelerators": [
                            {
                                "vendor": "ascend",
                                "devices": [{"name": "910B1"}, {"name": "910B1"}],
                                "version": "24.1.rc2",
                                "cann_version": "8.0.0",
                            }
                        ]
                    },
                    "runtime": {"hostname": SECRETS["host"], "python_version": "3.11.7", "command": SECRETS["path"]},
                }
            ),
            {
                "accelerator": "910B1",
                "accelerator_count": "2",
                "driver": "24.1.rc2",
                "cann": "8.0.0",
                "python": "3.11.7",
            },
        ),
        (
            "requirements.txt",
            f"torch==2.9.0\ntorch-npu==2.9.0.post1\nvllm==0.11.0\nplanted @ {SECRETS['address']}\nnumpy==2.4.0\n",
            {"torch": "2.9.0", "torch_npu": "2.9.0.post1", "vllm": "0.11.0"},
        ),
        (
            "env.json",
            json.dumps({"XTUNER_USE_VLLM": "1", "HCCL_DETERMINISTIC": "true", "HF_TOKEN": SECRETS["api_key"]}),
            {"rollout_engine": "vllm", "deterministic": "true"},
        ),
        ("wandb-metadata.json", "no json", {}),
        ("config.yaml", "a: [", {}),
    ],
)
def test_files_of_a_tracker(tmp_path: Path, name: str, text: str, expected: dict[str, str]) -> None:
    (tmp_path / name).write_text(text)
    assert metadata.from_folder(tmp_path) == expected


def test_nothing_of_a_wandb_run_gets_out(tmp_path: Path) -> None:
    items = b"".join(
        encode.blob(1, encode.blob(1, key) + encode.blob(16, json.dumps(text))) for key, text in SECRETS.items()
    )
    run = encode.blob(17, encode.blob(4, items) + encode.blob(13, SECRETS["host"]))
    environment = encode.blob(26, encode.blob(10, SECRETS["owner"]) + encode.blob(12, SECRETS["host"]))
    (tmp_path / "run-x.wandb").write_bytes(encode.wandb([(1, {"loss": 0.5})], extra=[run, environment]))
    log = read_log(tmp_path / "run-x.wandb")
    everything = told(log.metadata) + told(log.issues) + told(log.points.to_pydict())
    assert not [secret for secret in SECRETS.values() if secret in everything]


@pytest.mark.parametrize(
    "secret", [*SECRETS.values(), "password=hunter22", "Authorization: Bearer abc.def", "10.1.2.3"]
)
def test_redaction(secret: str) -> None:
    if secret.startswith("/") or "internal" in secret:
        secret = f"hostname: {secret}"
    assert secret not in redact(f"before {secret} after")
    assert redact('{"step": 1, "loss": 0.5}') == '{"step": 1, "loss": 0.5}'


def test_of_an_unreadable_line_only_keys_and_numbers_are_shown() -> None:
    line = '{"step": 3, "note": "run by Planted Person on planted-host-17", "data": {"loss": 0.5, "r": -1e-05, "x": NaN'
    assert outline(line) == (
        '{"step": 3, "note": "... ... ... ... ... ...", "data": {"loss": 0.5, "r": -1e-05, "x": NaN'
    )
    assert outline("actor/loss:0.5 planted-host-17") == "actor/loss:0.5 ..."


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("events.out.tfevents.1700000000.planted-host.1234.0", "events.out.tfevents.1700000000.*.1234.0"),
        (
            "events.out.tfevents.1700000000.planted-host.example.com.1234.0.v2",
            "events.out.tfevents.1700000000.*.1234.0.v2",
        ),
        ("events.out.tfevents.1700000000.10.0.0.5.1234.0", "events.out.tfevents.1700000000.*.1234.0"),
        ("events.out.tfevents.1700000000.planted-host", "events.out.tfevents.1700000000.*"),
        ("events.out.tfevents.1700000000.planted-host_suffix", "events.out.tfevents.1700000000.*"),
        ("Nov29_12-00-00_planted-host/events.out.tfevents.1700000000.h.1.0", "events.out.tfevents.1700000000.*.1.0"),
        ("log", "log"),
    ],
)
def test_event_files_are_named_without_their_host(name: str, shown: str) -> None:
    assert tensorboard.label(Path(name)) == shown


def test_event_files_of_two_hosts_are_told_apart(tmp_path: Path) -> None:
    for host, step in (("a", 1), ("b", 2)):
        content = b"".join(encode.events([(step, {"loss": 0.5})]))
        (tmp_path / f"events.out.tfevents.1700000000.{host}.1.0").write_bytes(content)
    sources = read_log(tmp_path).points["source_file"].to_pylist()
    assert sources == ["events.out.tfevents.1700000000.*.1.0", "events.out.tfevents.1700000000.*.1.0 (2)"]
