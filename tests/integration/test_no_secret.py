"""Nothing private that is planted in what trackers record comes out anywhere: all bytes and tables are searched."""

import gzip
import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml

from tests.ingest import encode
from tests.integration.conftest import firstdrift

pytestmark = pytest.mark.slow

MARK = "planted"
TOKEN, MAIL, HOST = "sk-planted0123456789abcdef", "planted.person@example.com", "planted-host-17"
USER, PATH, ADDRESS = "planted_user", "/home/planted_user/models/tiny", "https://planted:pw@planted.example.com/x"
PRIVATE = {"api_key": TOKEN, "email": MAIL, "host": HOST, "user": USER, "path": PATH, "url": ADDRESS, "author": HOST}
CONFIG = {**PRIVATE, "seed": 7, "precision": MAIL, "attn_implementation": TOKEN, "actor": {"model": {"path": PATH}}}
ROWS = [(step, {"train/loss": step / 7, "reward/avg_raw_reward": step / 3}) for step in range(1, 9)]
FREE_TEXT = f"started by {USER} on {HOST} ({MAIL}), token {TOKEN}, {ADDRESS}, {PATH}"


def text(value: object) -> str:
    return json.dumps(value)


def write_beside(folder: Path) -> None:
    """Write the files that trackers and frameworks leave in the folder of a run."""
    (folder / "files").mkdir(parents=True)
    (folder / "files/wandb-metadata.json").write_text(
        text({**PRIVATE, "gpu": "NVIDIA L4", "args": [TOKEN], "username": USER})
    )
    (folder / "files/wandb-summary.json").write_text(text(PRIVATE))
    (folder / "files/config.yaml").write_text(yaml.safe_dump({key: {"value": value} for key, value in CONFIG.items()}))
    (folder / "files/output.log").write_text(FREE_TEXT)
    hardware = {"accelerators": [{"vendor": "ascend", "devices": [{"name": "910B1"}], "serial": HOST}]}
    (folder / "files/swanlab-metadata.json").write_text(
        text({"hardware": hardware, "runtime": {"hostname": HOST, **PRIVATE}})
    )
    (folder / "requirements.txt").write_text(f"torch==2.9.0\nvllm=={TOKEN}\nsecret @ {ADDRESS}\nprivate=={HOST}\n")
    (folder / ".hydra").mkdir()
    (folder / ".hydra/config.yaml").write_text(yaml.safe_dump(CONFIG))
    (folder / "logs").mkdir()
    environment = {
        "HF_TOKEN": TOKEN,
        "HOSTNAME": HOST,
        "USER": USER,
        "CUDA_VERSION": TOKEN,
        "HCCL_DETERMINISTIC": "true",
    }
    (folder / "logs/env.json").write_text(text(environment))
    (folder / "run.yaml").write_text(f"recipe: {{model: {PATH}, dataset: {ADDRESS}, algorithm: {MAIL}}}\n")


def write_jsonl(folder: Path) -> None:
    write_beside(folder)
    lines = [text({"step": step, **PRIVATE, **values}) for step, values in ROWS]
    bad = [
        '{"step": 3, ' + text(FREE_TEXT),
        text({"note": FREE_TEXT, **PRIVATE}),
        text({"step": FREE_TEXT, "loss": 1.0}),
    ]
    (folder / "tracker.jsonl").write_text("\n".join([*lines, *bad, text(FREE_TEXT), ""]))


def write_console(folder: Path) -> None:
    write_beside(folder)
    prefix = f"\x1b[36m(TaskRunner pid=1, ip={HOST})\x1b[0m "
    config = repr({"actor_rollout_ref": {"rollout": {"name": "vllm"}}, **CONFIG}).replace(", '", ",\n '")
    lines = [FREE_TEXT, *(prefix + line for line in config.split("\n"))]
    lines += [f"{prefix}step:{step} - " + " - ".join(f"{k}:{v:.3f}" for k, v in row.items()) for step, row in ROWS]
    lines += [f"{prefix}step:9 - actor/pg_loss:{HOST} - user={USER} - note:{FREE_TEXT}"]
    (folder / "train.log").write_text("\n".join([*lines, ""]))


def write_printed(folder: Path, line: str) -> None:
    """Write a console log of another framework, with a printed configuration and a bad line."""
    folder.mkdir()
    rows = [line % (step, text(row)) for step, row in ROWS]
    bad = [line % (9, text({**PRIVATE, "loss": 1.0})[:-1]), line % (9, repr(PRIVATE)), repr(CONFIG), FREE_TEXT]
    (folder / "train.log").write_text("\n".join([*rows, *bad, ""]))


def write_wandb(folder: Path) -> None:
    run = folder / "offline-run-20260101_000000-x"
    run.mkdir(parents=True)
    write_beside(run)
    config = b"".join(
        encode.blob(1, encode.blob(1, key) + encode.blob(16, text(value))) for key, value in CONFIG.items()
    )
    private = b"".join(encode.blob(field, value) for field, value in ((10, MAIL), (12, HOST), (2, PATH)))
    records = [
        encode.blob(17, encode.blob(4, config) + encode.blob(13, HOST) + encode.blob(2, USER)),
        encode.blob(26, private + encode.blob(18, HOST + "@" + USER)),
        encode.blob(13, encode.blob(2, FREE_TEXT)),
        encode.blob(3, config),
        encode.blob(11, private),
    ]
    content = encode.wandb(ROWS, extra=records)
    (run / "run-x.wandb").write_bytes(content + content[-40:])


def write_swanlab(folder: Path) -> None:
    folder.mkdir()
    write_beside(folder)
    (folder / "run-x.swanlab").write_bytes(encode.swanlab(ROWS, name="run"))


def write_mlflow(folder: Path) -> None:
    folder.mkdir()
    keyed = [(name, value, step, False) for step, row in ROWS for name, value in row.items()]
    encode.mlflow(folder / "mlflow.db", {"run": keyed})
    con = sqlite3.connect(folder / "mlflow.db")
    con.executescript("create table tags (key varchar, value varchar, run_uuid varchar)")
    for table, values in (("params", CONFIG), ("tags", PRIVATE)):
        con.executemany(f"insert into {table} values (?, ?, ?)", [(k, str(v), "0" * 32) for k, v in values.items()])
    con.execute("insert into metrics values ('loss', ?, 1, ?, 9, 0)", (FREE_TEXT, "0" * 32))
    con.commit()
    con.close()


def write_mlruns(folder: Path) -> None:
    run = folder / "1/abc"
    for name in ("metrics", "params", "tags"):
        (run / name).mkdir(parents=True)
    meta = {"run_name": "r", "status": 3, "user_id": USER, "artifact_uri": ADDRESS, "lifecycle_stage": "active"}
    (run / "meta.yaml").write_text(yaml.safe_dump(meta))
    (run / "metrics/loss").write_text("".join(f"170000000{s}000 {s / 7} {s}\n" for s, _ in ROWS) + FREE_TEXT + "\n")
    for key, value in CONFIG.items():
        (run / "params" / key).write_text(str(value))
        (run / "tags" / key).write_text(str(value))


def write_trackio(folder: Path) -> None:
    folder.mkdir()
    rows = [(step, text({**row, **PRIVATE})) for step, row in ROWS]
    encode.trackio(folder / "project.db", [*rows, (9, FREE_TEXT)])
    con = sqlite3.connect(folder / "project.db")
    con.execute("insert into configs values (null, 'id', 'fixture', ?)", (text({**CONFIG, "_Username": USER}),))
    con.commit()
    con.close()


def write_clearml(folder: Path) -> None:
    folder.mkdir()
    events = [
        {
            "timestamp": 1,
            "type": "training_stats_scalar",
            "iter": s,
            "metric": n,
            "variant": n,
            "value": v,
            "worker": HOST,
        }
        for s, row in ROWS
        for n, v in row.items()
    ]
    (folder / "metrics.jsonl").write_text(f"{text(events)}\n{text([{**events[0], 'value': FREE_TEXT}, FREE_TEXT])}\n")
    parameters = {"Args": {key: {"value": str(value), "name": key} for key, value in CONFIG.items()}}
    (folder / "task.json").write_text(text({"hyperparams": parameters, "user": USER, "script": {"diff": FREE_TEXT}}))


def write_events(folder: Path) -> None:
    run = folder / f"Jan01_00-00-00_{HOST}"
    run.mkdir(parents=True)
    plugin = encode.blob(9, encode.blob(1, encode.blob(1, "text")))
    note = encode.blob(1, encode.blob(1, "config/text_summary") + encode.blob(8, encode.blob(8, FREE_TEXT)) + plugin)
    content = encode.events(ROWS)
    content.insert(2, encode.tfrecord(encode.double(1, 1.7e9) + encode.blob(5, note)))
    (run / f"events.out.tfevents.1700000000.{HOST}.12.0").write_bytes(b"".join(content) + b"torn")


def write_trainer_state(folder: Path) -> None:
    folder.mkdir()
    rows = [{"step": step, **row, **PRIVATE} for step, row in ROWS]
    state = {
        "global_step": 8,
        "log_history": [*rows, FREE_TEXT, {"note": FREE_TEXT}],
        "hub_token": TOKEN,
        "trial_name": HOST,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=1))


def write_table(folder: Path) -> None:
    folder.mkdir()
    lines = [
        "step,loss,host,user",
        *(f"{s},{s / 7},{HOST},{USER}" for s, _ in ROWS),
        f"x,{TOKEN},{MAIL},{PATH}",
        FREE_TEXT,
    ]
    (folder / "log.csv").write_text("\n".join([*lines, ""]))


WRITERS = {
    "jsonl": write_jsonl,
    "console": write_console,
    "roll": lambda folder: write_printed(folder, 'metrics_tag: {"step": %d, "metrics": %s}'),
    "slime": lambda folder: write_printed(folder, "x.py:1 - rollout %d: %s"),
    "trl": lambda folder: write_printed(folder, "%d/9 [00:01<00:02]\r{'loss': '0.5', 'more': %s}"),
    "wandb": write_wandb,
    "swanlab": write_swanlab,
    "mlflow": write_mlflow,
    "mlruns": write_mlruns,
    "trackio": write_trackio,
    "clearml": write_clearml,
    "events": write_events,
    "trainer_state": write_trainer_state,
    "table": write_table,
}


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that a file holds: its bytes, and what is packed in it."""
    data = path.read_bytes()
    yield path.name, data
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            yield from ((f"{path.name}/{name}", packed.read(name)) for name in packed.namelist())
    elif data[:2] == b"\x1f\x8b":
        yield f"{path.name} unpacked", gzip.decompress(data)
    elif data[:4] == b"PAR1":
        yield f"{path.name} columns", repr(pq.read_table(path).to_pydict()).encode()
    elif data[:15] == b"SQLite format 3":
        con = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        yield f"{path.name} rows", "\n".join(con.iterdump()).encode()
        con.close()
    elif path.suffix == ".duckdb":
        with duckdb.connect(path, read_only=True) as con:
            names = con.execute("select database_name, schema_name, table_name from duckdb_tables()").fetchall()
            for name in names:
                rows = con.execute("from " + ".".join(f'"{part}"' for part in name)).fetchall()
                yield f"{path.name} {name[2]}", repr(rows).encode()


@pytest.mark.slow
def test_nothing_private_comes_out(tmp_path: Path) -> None:
    for name, write in WRITERS.items():
        write(tmp_path / "landing/m" / name)
    spoken = ""
    for command in (["run"], ["show"], ["report"]):
        done = firstdrift(tmp_path, *command, check=False)
        spoken += done.stdout + done.stderr
    for target in (
        ["--format", "csv", "--to", str(tmp_path / "exports/csv")],
        ["--to", str(tmp_path / "exports/all.xlsx")],
    ):
        firstdrift(tmp_path, "export", *target)
    spoken += firstdrift(tmp_path, "inspect", str(tmp_path / "landing/m"), check=False).stdout
    assert MARK not in spoken.lower().replace(str(tmp_path).lower(), "")

    con = duckdb.connect(tmp_path / "published/firstdrift.duckdb", read_only=True)
    runs = {name for (name,) in con.execute("select run_name from dim_run where point_count >= 8").fetchall()}
    assert runs == set(WRITERS), "every source must have been read"
    quarantined = con.execute("select count(*) from fct_parse_issue").fetchone()
    con.close()
    assert quarantined is not None
    assert quarantined[0] > 15, "bad pieces must have been met"

    shutil.rmtree(tmp_path / "landing")
    kinds = set()
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        for name, data in contents(path):
            kinds.add(path.suffix)
            assert MARK.encode() not in data.lower(), f"{path.relative_to(tmp_path)}: {name}"
    assert {".parquet", ".duckdb", ".html", ".json", ".csv", ".xlsx", ".db"} <= kinds
