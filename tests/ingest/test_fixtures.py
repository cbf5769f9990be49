"""Every reader has a fixture, knows it, and reads it to the last point."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

from pipelines import ingest
from pipelines.ingest import guide, registry
from pipelines.ingest.base import LogError, RunLog
from pipelines.ingest.draft import Draft, LogFile
from pipelines.ingest.registry import READERS, detect, log_files, read_log
from pipelines.ingest.sources import Line, head, read_lines
from warehouse.contract import LOG_PRECISIONS, POINT_SCHEMA, VALUE_KINDS

FIXTURES = Path(__file__).parent / "fixtures"

# By hand, from the fixtures' text: points, issues, first and last step, non-finite kinds.
EXPECTED = {
    "jsonl": (16, 3, 0, 3, {"nan": 2, "pos_inf": 1, "neg_inf": 1, "nonfinite_unknown": 1}),
    "verl_console": (17, 2, 0, 3, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "tensorboard": (14, 0, 0, 3, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "table": (5, 2, 1, 3, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "metric_map": (5, 1, 1, 3, {"nan": 1, "pos_inf": 1}),
    "wandb": (10, 0, 1, 100, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "swanlab": (8, 0, 1, 4, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "mlflow": (6, 0, 0, 3, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "trackio": (5, 0, 1, 3, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "clearml": (3, 1, 1, 2, {"rewritten_suspect": 2}),
    "trainer_state": (6, 1, 10, 20, {"nan": 1, "pos_inf": 1}),
    "roll": (4, 1, 0, 1, {"nan": 1, "pos_inf": 1}),
    "slime": (13, 1, 0, 1, {"nan": 1, "pos_inf": 1, "neg_inf": 1}),
    "trl_console": (12, 0, 2, 4, {"nan": 1, "pos_inf": 1}),
}


def kinds(run: RunLog) -> dict[str, int]:
    counted = Counter(run.points["value_kind"].to_pylist())
    counted.pop("finite", None)
    return dict(counted)


def values(run: RunLog, metric: str, axis: str = "step") -> list[tuple[int, int, int, float | None]]:
    rows = run.points.to_pylist()
    return [
        (r["attempt"], r["step"], r["write_no"], r["value"])
        for r in rows
        if r["metric_name"] == metric and r["step_axis"] == axis
    ]


def keeps_the_contract(reader: ModuleType, fixtures: Path) -> RunLog:
    """Hold a reader against what every reader must do, with its fixture."""
    fixture = fixtures / reader.NAME
    assert fixture.is_dir(), f"reader {reader.NAME} has no fixture folder in tests/ingest/fixtures"
    assert reader.__doc__
    assert detect(fixture) is reader
    run = read_log(fixture)
    assert run.log_format == reader.NAME
    assert run.points.num_rows > 0
    assert run.points.schema == POINT_SCHEMA
    assert run.log_precision in LOG_PRECISIONS
    assert set(run.points["value_kind"].to_pylist()) <= set(VALUE_KINDS)
    sources = {name for name in run.points["source_file"].to_pylist()}
    files = {f.relative_to(fixture).as_posix() for f in log_files(fixture)}
    assert all(any(fnmatch(file, source) for file in files) for source in sources)
    key = ["metric_name", "step_axis", "attempt", "step", "write_no"]
    rows = [tuple(r[k] for k in key) for r in run.points.select(key).to_pylist()]
    assert rows == sorted(set(rows))
    return run


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.NAME)
def test_reader_keeps_the_contract(reader: ModuleType) -> None:
    run = keeps_the_contract(reader, FIXTURES)
    steps = run.points["step"].to_pylist()
    found = (run.points.num_rows, len(run.issues), min(steps), max(steps), kinds(run))
    assert found == EXPECTED.get(reader.NAME, found)


def test_every_module_that_is_a_reader_is_registered() -> None:
    names = [module.name for module in pkgutil.iter_modules(ingest.__path__)]
    modules = [importlib.import_module(f"pipelines.ingest.{name}") for name in names]
    assert {m for m in modules if all(hasattr(m, name) for name in ("NAME", "sniff", "scan"))} == set(READERS)


def test_a_new_reader_is_found_by_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One module, one entry of the registry, one fixture: without any of them the tests fail, and the page lists it."""
    acme = ModuleType("acme", "Acme's logs: a name and a number.\n\nThe number of a line is its step.")

    def scan(log: LogFile) -> Iterator[Draft]:
        draft = log.draft()

        def take(line: Line) -> None:
            _, name, number = line.body.decode().split()
            draft.add(name, line.number, float(number), None, (log.source, line.number))

        return read_lines(log, draft, take)

    vars(acme).update(NAME="acme", sniff=lambda path: head(path)[:4] == b"ACME", scan=scan)
    monkeypatch.setattr(registry, "READERS", (acme, *READERS))
    monkeypatch.setattr(guide, "READERS", (acme, *READERS))
    with pytest.raises(AssertionError, match="reader acme has no fixture folder"):
        keeps_the_contract(acme, tmp_path)
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/log").write_text("ACME loss 0.5\nACME loss 0.25\n")
    assert values(keeps_the_contract(acme, tmp_path), "loss") == [(1, 1, 1, 0.5), (1, 2, 1, 0.25)]
    assert "## acme\n\nAcme's logs: a name and a number." in guide.page()


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.NAME)
def test_only_one_reader_knows_a_fixture(reader: ModuleType) -> None:
    for file in log_files(FIXTURES / reader.NAME):
        first = next(r for r in READERS if r.sniff(file))
        assert first is reader


def test_two_axes_of_xtuner() -> None:
    run = read_log(FIXTURES / "jsonl")
    assert run.framework == "xtuner"
    assert [v[1] for v in values(run, "train_metrics/worker_0/lr", "optimizer_step")] == [1, 2, 3]
    assert values(run, "response/rewards/mean") == [(1, 1, 1, -0.5), (1, 2, 1, None)]
    completed = next(r for r in run.points.to_pylist() if r["metric_name"] == "async/completed")
    assert completed["raw_text"] == "9007199254740993"
    assert [i.source_position for i in run.issues] == [8, 9, 10]


def test_console_takes_no_metric_for_the_start() -> None:
    run = read_log(FIXTURES / "verl_console")
    assert values(run, "training/global_step") == [(1, 1, 1, 1.0), (1, 2, 1, 2.0), (2, 2, 1, 2.0)]
    assert values(run, "actor/lr(1e-4)")[-1] == (2, 3, 1, 1e-05)
    assert {i.source_position for i in run.issues} == {5, 6}


def test_event_files_keep_single_precision_and_attempts() -> None:
    run = read_log(FIXTURES / "tensorboard")
    assert run.log_precision == "float32"
    assert values(run, "counter") == [
        (1, 0, 1, 16836496.0),
        (1, 1, 1, 2.0),
        (1, 2, 1, 3.0),
        (2, 2, 1, 4.0),
        (2, 3, 1, 5.0),
    ]
    assert values(run, "t/double") == [(1, 1, 1, 0.1)]
    assert values(run, "t/half") == [(1, 1, 1, 1.5)]
    assert values(run, "t/float") == [(1, 1, 1, 0.5), (1, 2, 1, 0.25)]
    assert "h" not in run.points["metric_name"].to_pylist()


def test_flipped_record_is_quarantined_and_the_rest_read(tmp_path: Path) -> None:
    data = bytearray((FIXTURES / "tensorboard/events.out.tfevents.1700000000.host.1.0").read_bytes())
    data[120] ^= 1  # the payload of the second record of scalars
    data[176] ^= 1  # the length of the third
    (tmp_path / "events").write_bytes(data)
    run = read_log(tmp_path / "events")
    assert [(i.source_position, i.reason.split(" (")[0]) for i in run.issues] == [
        (107, "checksum of a record is wrong"),
        (176, "damaged record header"),
    ]
    assert run.points.num_rows == 6


def test_long_table_parquet_and_columns(tmp_path: Path) -> None:
    import polars as pl

    (tmp_path / "long.csv").write_text("metric,step,value,axis\na,1,0.5,step\nb,7,nan,eval\n")
    run = read_log(tmp_path / "long.csv")
    assert values(run, "a") == [(1, 1, 1, 0.5)]
    assert kinds(run) == {"nan": 1}
    assert run.points["step_axis"].to_pylist() == ["step", "eval"]

    pl.DataFrame({"step": [1, 2, 3], "x": [0.1, None, float("inf")]}).write_parquet(tmp_path / "w.parquet")
    run = read_log(tmp_path / "w.parquet")
    assert values(run, "x") == [(1, 1, 1, 0.1), (1, 3, 1, float("inf"))]

    (tmp_path / "bare.csv").write_text("1,0.5,3\n2,0.25,4\n")
    assert set(read_log(tmp_path / "bare.csv").points["metric_name"].to_pylist()) == {"column_2", "column_3"}
    named = read_log(tmp_path / "bare.csv", columns=["step", "loss", "n"])
    assert values(named, "loss") == [(1, 1, 1, 0.5), (1, 2, 1, 0.25)]

    (tmp_path / "two_runs.csv").write_text("run,metric,step,value\nr1,a,1,1\nr2,a,1,2\n")
    with pytest.raises(LogError, match=r"2 runs \(r1, r2\)"):
        read_log(tmp_path / "two_runs.csv")


def test_several_files_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"step":{s},"data":{{"m":{s}.5}}}}\n' for s in range(1, 6)))
    (tmp_path / "b.jsonl").write_text("".join(f'{{"step":{s},"data":{{"m":{s}.0}}}}\n' for s in range(4, 8)))
    run = read_log([tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    assert [v[:2] for v in values(run, "m")] == [(1, s) for s in range(1, 6)] + [(2, s) for s in range(4, 8)]
    assert read_log(tmp_path).points.equals(run.points)
    assert log_files(tmp_path) == [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]


def test_rewind_in_one_file_and_late_rows(tmp_path: Path) -> None:
    def row(step: int, name: str) -> str:
        return f'{{"step":{step},"data":{{"{name}":1.0}}}}\n'

    resumed = [row(s, "loss") for s in (1, 2, 3, 2, 3, 4)]
    (tmp_path / "resumed.jsonl").write_text("".join(resumed))
    run = read_log(tmp_path / "resumed.jsonl")
    assert [v[:2] for v in values(run, "loss")] == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 4)]

    late = [row(1, "loss"), row(2, "loss"), row(2, "eval"), row(3, "loss"), row(2, "eval_slow"), row(4, "loss")]
    (tmp_path / "late.jsonl").write_text("".join(late))
    assert set(read_log(tmp_path / "late.jsonl").points["attempt"].to_pylist()) == {1}


def test_nothing_fits(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such file"):
        detect(tmp_path / "absent")
    (tmp_path / "readme.md").write_text("# Title\n\nA text without numbers.\n")
    with pytest.raises(LogError, match="no reader knows"):
        detect(tmp_path / "readme.md")
    with pytest.raises(LogError, match="none of the 1 files"):
        detect(tmp_path)


def test_folders_of_several_runs_are_not_mixed(tmp_path: Path) -> None:
    source = (FIXTURES / "tensorboard/events.out.tfevents.1700000000.host.1.0").read_bytes()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1.h").write_bytes(source)
    with pytest.raises(LogError, match="several runs"):
        read_log(tmp_path)
    assert read_log(tmp_path / "a").points.num_rows == 10
