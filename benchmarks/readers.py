"""How fast logs get from file to lake, beside other readers that do the same job.

`python -m benchmarks.readers` writes each log into a temporary folder and reads it with us and with the peer in turn,
every time in a fresh process: A B A B ... It prints wall clock, processor time (all threads, start and imports
included) and peak memory of each, and the medians of the ratios of the pairs: the machine's speed may drift, a ratio
does not. `--scalars 8000000 --alone` measures us only, on logs four times as large.

Ours is the whole way: hash of the file, points with value, kind, attempt, step, write number and position, Parquet
parts. DuckDB does the same in SQL, down to the Parquet file. TensorBoard, MLflow and wandb give what their readers
give, in memory. Peers are looked for in the folders of `--peers` (site-packages of environments of their own, which
may conflict with ours); wandb's own reader is that of its releases up to 0.21.
"""

import argparse
import importlib.util
import json
import math
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

METRICS = 100


def value(metric: int, step: int) -> float:
    if metric == 7 and step % 10 == 0:
        return math.nan
    if metric == 9 and step % 14 == 0:
        return math.inf
    return math.sin(step * 0.01 + metric) * (metric + 1)


def names() -> list[str]:
    return [f"group_{m % 7}/some_metric_name_{m:03d}/mean" for m in range(METRICS)]


def write_jsonl(path: Path, steps: int) -> None:
    keys = names()
    with path.open("w") as file:
        for step in range(1, steps + 1):
            file.write(json.dumps({"step": step, "data": {k: value(m, step) for m, k in enumerate(keys)}}) + "\n")


def write_events(path: Path, steps: int) -> None:
    from tests.ingest import encode

    keys = names()
    with path.open("wb") as file:
        for step in range(1, steps + 1):
            row = {k: value(m, step) for m, k in enumerate(keys)}
            file.write(b"".join(encode.events([(step, row)])[0 if step == 1 else 1 :]))


def write_wandb(path: Path, steps: int) -> None:
    from tests.ingest import encode

    keys = names()
    rows = ((s, {k: value(m, s) for m, k in enumerate(keys)}) for s in range(1, steps + 1))
    path.write_bytes(encode.wandb(rows))


def mlflow_run(path: Path) -> str | None:
    """Let MLflow make an empty store with one run; None where MLflow is absent."""
    if importlib.util.find_spec("mlflow") is None:
        return None
    from mlflow import MlflowClient  # type: ignore

    client = MlflowClient(f"sqlite:///{path}")
    return client.create_run(client.create_experiment("bench", artifact_location=path.parent.as_uri())).info.run_id


def write_mlflow(path: Path, steps: int) -> None:
    from tests.ingest import encode

    def rows() -> Iterator[tuple[str, float, int, bool]]:
        for step in range(1, steps + 1):
            for metric, key in enumerate(names()):
                number = value(metric, step)
                stored = 0.0 if math.isnan(number) else math.copysign(sys.float_info.max, number)
                yield key, number if math.isfinite(number) else stored, step, math.isnan(number)

    uuid = mlflow_run(path)
    if uuid is None:
        encode.mlflow(path, {"run": list(rows())})
        return
    con = sqlite3.connect(path)
    sql = "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, ?)"
    con.executemany(sql, ((k, v, 1_700_000_000_000 + at, uuid, s, n) for at, (k, v, s, n) in enumerate(rows())))
    con.commit()
    con.close()


def ours(path: Path) -> int:
    from pipelines.intake import Job, fingerprints, hash_of, take_in
    from pipelines.manifest import RunEntry

    files = fingerprints([path])
    job = Job("m", RunEntry(name="run", log=path.name, role="baseline"), (path,), files, hash_of(files), "")
    with tempfile.TemporaryDirectory() as lake:
        outcome = take_in(job, Path(lake))
    assert not outcome.error, outcome.error
    return outcome.point_count


def duckdb_jsonl(path: Path) -> int:
    """DuckDB's JSON reader into the same long table: kind, position, order."""
    import duckdb

    con = duckdb.connect()
    con.execute("set threads = 2")
    with tempfile.TemporaryDirectory() as folder:
        (count,) = con.execute(
            f"""
            copy (
                with r as (
                    select row_number() over () as line, step, data
                    from read_ndjson('{path}', columns = {{step: 'bigint', data: 'map(varchar, double)'}})
                ),
                l as (
                    select line, step, unnest(map_keys(data)) as metric_name, unnest(map_values(data)) as value from r
                )
                select
                    metric_name, 'step' as step_axis, 1::integer as attempt, step,
                    row_number() over (partition by metric_name, step order by line)::integer as write_no, value,
                    case when isnan(value) then 'nan' when value = 'inf' then 'pos_inf'
                        when value = '-inf' then 'neg_inf' when value is null then 'nonfinite_unknown'
                        else 'finite' end as value_kind,
                    null::varchar as raw_text, null::double as wall_time, 'log' as source_file, line as source_position
                from l order by metric_name, step, line
            ) to '{folder}/run.parquet' (compression zstd)
            """
        ).fetchone() or (0,)
    return count


def event_accumulator(path: Path) -> int:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore

    loader = EventAccumulator(str(path), size_guidance={"scalars": 0})
    loader.Reload()
    return sum(len(loader.Scalars(tag)) for tag in loader.Tags()["scalars"])


def metric_history(path: Path) -> int:
    from mlflow import MlflowClient  # type: ignore

    client = MlflowClient(f"sqlite:///{path}")
    (run,) = client.search_runs(["1"])
    return sum(len(client.get_metric_history(run.info.run_id, key)) for key in names())


def wandb_datastore(path: Path) -> int:
    from wandb.proto import wandb_internal_pb2 as pb  # type: ignore
    from wandb.sdk.internal.datastore import DataStore  # type: ignore

    store, count = DataStore(), 0
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = pb.Record()
        record.ParseFromString(data)
        row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        count += sum(not key.startswith("_") for key in row)
    return count


JOBS: dict[str, tuple[str, Callable[[Path, int], None], dict[str, Callable[[Path], int]]]] = {
    "jsonl": ("log.jsonl", write_jsonl, {"firstdrift": ours, "duckdb": duckdb_jsonl}),
    "events": ("events.out.tfevents.1.h", write_events, {"firstdrift": ours, "tensorboard": event_accumulator}),
    "wandb": ("run-x.wandb", write_wandb, {"firstdrift": ours, "wandb": wandb_datastore}),
    "mlflow": ("mlflow.db", write_mlflow, {"firstdrift": ours, "mlflow": metric_history}),
}


def measure(job: str, reader: str, path: Path, peers: list[str]) -> dict[str, float]:
    """Read once in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.readers", "--one", job, reader, str(path), "--peers", *peers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def one(job: str, reader: str, path: Path) -> None:
    read = JOBS[job][2][reader]
    begin = time.perf_counter()
    rows = read(path)
    seconds, cpu = time.perf_counter() - begin, time.process_time()
    # Of this process alone: ru_maxrss also knows what the parent held when it started this one.
    peak = next(
        int(line.split()[1]) / 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    print(json.dumps({"rows": rows, "wall": seconds, "cpu": cpu, "peak_mb": peak}))


def report(job: str, megabytes: float, results: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians of each reader, and of the ratios of the pairs."""
    for reader, runs in results.items():
        wall, cpu, peak = (statistics.median(run[key] for run in runs) for key in ("wall", "cpu", "peak_mb"))
        print(
            f"{job:7}{megabytes:6.0f} MB  {reader:12}{wall:8.2f} s wall{cpu:8.2f} s cpu"
            f"{runs[0]['rows'] / wall / 1e3:8.0f} k/s{peak:7.0f} MB peak",
            flush=True,
        )
    ours_, *others = results.items()
    for peer, runs in others:
        for key in ("wall", "cpu"):
            ratios = sorted(b[key] / a[key] for a, b in zip(ours_[1], runs, strict=True))
            middle = statistics.median(ratios)
            print(f"{job:7}{peer} / firstdrift, {key}: {middle:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scalars", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(JOBS))
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--peers", nargs="*", default=[], help="site-packages folders of the peers")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    is_peer = bool(options.one) and options.one[1] != "firstdrift"
    sys.path[:] = [*options.peers, *sys.path] if is_peer else [*sys.path, *options.peers]
    if options.one:
        one(options.one[0], options.one[1], Path(options.one[2]))
        return
    for job in options.only:
        name, write, readers = JOBS[job]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            write(path, options.scalars // METRICS)
            usable = [r for r in readers if r == "firstdrift" or (not options.alone and importlib.util.find_spec(r))]
            for absent in set(readers) - set(usable):
                print(f"{job}: {absent} is left out")
            results: dict[str, list[dict[str, float]]] = {reader: [] for reader in usable}
            for _ in range(options.repeats):
                for reader in usable:
                    results[reader].append(measure(job, reader, path, options.peers))
            report(job, path.stat().st_size / 1e6, results)


if __name__ == "__main__":
    main()
