"""Reading a log stays cheap."""

import subprocess
import sys
from pathlib import Path

from pipelines.ingest.base import ParseIssue, issues_table
from pipelines.ingest.registry import read_log
from tests.ingest.test_fixtures import FIXTURES
from warehouse.contract import ISSUE_SCHEMA

CODE = """
import sys
from pathlib import Path
from pipelines.ingest.base import issues_table
from pipelines.ingest.registry import read_log
for name in ("jsonl", "tensorboard", "verl_console", "wandb", "mlflow"):
    issues_table(read_log(Path(sys.argv[1]) / name).issues)
print(sorted({"pandas", "dagster", "duckdb", "great_expectations"} & set(sys.modules)))
"""


def test_no_heavy_import() -> None:
    project = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(FIXTURES)], capture_output=True, text=True, check=True, cwd=project
    )
    assert done.stdout.strip() == "[]"


def test_issues_table() -> None:
    table = issues_table([ParseIssue("a", 1, "torn", "x" * 300, None), ParseIssue("b", 2, "bad", "", 3)])
    assert table.schema == ISSUE_SCHEMA
    assert table["lost_points"].to_pylist() == [None, 3]
    assert len(table["snippet"][0].as_py()) == 200
    assert issues_table([]).schema == ISSUE_SCHEMA


def test_half_a_surrogate_pair_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "data": {"a\\ud800": NaN, "b": "\\udc00"}}\n{"step": "\\ud800"}\n')
    log = read_log(tmp_path / "log.jsonl")
    assert log.points["metric_name"].to_pylist() == ["a?"]
    assert issues_table(log.issues).num_rows == 1
