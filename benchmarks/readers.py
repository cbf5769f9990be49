"""How fast logs are read into the long table of points, beside other readers doing the same job.

`python -m benchmarks.readers --scalars 2000000` writes the logs into a temporary folder, reads each several times, the
readers taking turns, and prints the best time, the best processor time (all threads and imports), scalars a second,
and the peak memory of a fresh process.
Peers are found in the folders of `--peers` (site-packages of environments of their own, which may conflict with ours);
absent ones are left out and named. The work measured is file to Arrow table with value, kind,
step, attempt and position, for us; for peers, file to whatever long table they give.
"""

import argparse
import importlib.util
import json
import math
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
    path.write_bytes(encode.wandb([(s, {k: value(m, s) for m, k in enumerate(keys)}) for s in range(1, steps + 1)]))


def mlflow_run(path: Path) -> str | None:
    """Let MLflow make an empty store with one run; None where MLflow is absent."""
    if importlib.util.find_spec("mlflow") is None:
        return None
    from mlflow import MlflowClient  # type: ignore

    client = MlflowClient(f"sqlite:///{path}")
    return client.create_run(client.create_experiment("bench", artifact_location=path.parent.as_uri())).info.run_id


def write_mlflow(path: Path, steps: int) -> None:
    from tests.ingest import encode

    keys = names()
    rows = []
    for step in range(1, steps + 1):
        for metric, key in enumerate(keys):
            number = value(metric, step)
            stored = 0.0 if math.isnan(number) else math.copysign(sys.float_info.max, number)
            rows.append((key, number if math.isfinite(number) else stored, step, math.isnan(number)))
    uuid = mlflow_run(path)
    if uuid is None:
        encode.mlflow(path, {"run": rows})
        return
    con = sqlite3.connect(path)
    sql = "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, ?)"
    con.executemany(sql, ((k, v, 1_700_000_000_000 + at, uuid, s, n) for at, (k, v, s, n) in enumerate(rows)))
    con.commit()
    con.close()


def ours(path: Path) -> int:
    from pipelines.ingest.registry import read_log

    return read_log(path).points.num_rows


def duckdb_jsonl(path: Path) -> int:
    """DuckDB's JSON reader into the same long table: kind, position, order."""
    import duckdb

    con = duckdb.connect()
    con.execute("set threads = 2")
    table = con.sql(
        f"""
        with r as (
            select row_number() over () as line, step, data
            from read_ndjson('{path}', columns = {{step: 'bigint', data: 'map(varchar, double)'}})
        ),
        l as (select line, step, unnest(map_keys(data)) as metric_name, unnest(map_values(data)) as value from r)
        select
            metric_name, 'step' as step_axis, 1::integer as attempt, step,
            row_number() over (partition by metric_name, step order by line)::integer as write_no, value,
            case when isnan(value) then 'nan' when value = 'inf' then 'pos_inf' when value = '-inf' then 'neg_inf'
                 when value is null then 'nonfinite_unknown' else 'finite' end as value_kind,
            null::varchar as raw_text, null::double as wall_time, 'log' as source_file, line as source_position
        from l order by metric_name, step, line
        """
    ).to_arrow_table()
    return table.num_rows


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


JOBS: dict[str, tuple[str, Callable[[Path, int], None], dict[str, Callable[[Path], int]]]] = {
    "jsonl": ("log.jsonl", write_jsonl, {"firstdrift": ours, "duckdb": duckdb_jsonl}),
    "events": ("events.out.tfevents.1.h", write_events, {"firstdrift": ours, "tensorboard": event_accumulator}),
    "wandb": ("run-x.wandb", write_wandb, {"firstdrift": ours}),
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu": cpu, "peak_mb": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scalars", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(JOBS))
    parser.add_argument("--peers", nargs="*", default=[], help="site-packages folders of the peers")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.extend(options.peers)
    if options.one:
        one(options.one[0], options.one[1], Path(options.one[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for job in options.only:
            name, write, readers = JOBS[job]
            path = Path(folder) / name
            write(path, options.scalars // METRICS)
            usable = [r for r in readers if r in ("firstdrift", "duckdb") or importlib.util.find_spec(r)]
            for absent in set(readers) - set(usable):
                print(f"{job}: {absent} is not installed, left out")
            results: dict[str, list[dict[str, float]]] = {reader: [] for reader in usable}
            for _ in range(options.repeats):
                for reader in usable:
                    results[reader].append(measure(job, reader, path, options.peers))
            for reader, runs in results.items():
                best = min(r["seconds"] for r in runs)
                cpu = min(r["cpu"] for r in runs)
                rate, peak = runs[0]["rows"] / best, max(r["peak_mb"] for r in runs)
                size = path.stat().st_size / 1e6
                print(
                    f"{job:8} {size:6.0f} MB  {reader:12} {best:7.2f} s  {cpu:7.2f} s cpu"
                    f"  {rate / 1e3:8.0f} k/s  {peak:6.0f} MB peak"
                )


if __name__ == "__main__":
    main()
