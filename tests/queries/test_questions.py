"""Every question of sql/queries, asked as an analyst would, on the published examples.

A question carries its own expectations: `-- test:` lines hold on the examples, `-- planted:` lines on a copy
in which what the examples lack (a restart, a gap, a quarantined line) has been planted. Each is an aggregate
over the answer that must be true.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from pipelines.questions import list_questions, parameters_of, run_question, values_of
from tests.integration.conftest import firstdrift
from warehouse.settings import project_folder

FILES = sorted((project_folder("sql") / "queries").glob("*.sql"))
PLANTED = [p for p in FILES if "-- planted:" in p.read_text() and p.stem != "uncatalogued_metrics"]
CLIENT = Path(__file__).with_name("ask_everything.py")


def expectations(path: Path, kind: str) -> list[str]:
    return re.findall(rf"^-- {kind}: (.+)$", path.read_text(encoding="utf-8"), re.M)


def holds(con: duckdb.DuckDBPyConnection, path: Path, expectation: str) -> object:
    sql = path.read_text(encoding="utf-8")
    answer = con.execute(f"select {expectation} from (\n{sql}\n) as answer", parameters_of(sql)).fetchall()
    return answer[0][0]


@pytest.fixture(scope="module")
def published(demo_home):
    con = duckdb.connect(demo_home / "published" / "firstdrift.duckdb", read_only=True)
    yield con
    con.close()


@pytest.fixture(scope="module")
def planted(demo_home, tmp_path_factory):
    """A writable copy in which one run was restarted, has a gap, a broken line and lacks a metric."""
    path = tmp_path_factory.mktemp("planted") / "planted.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", path)
    path.chmod(0o644)
    con = duckdb.connect(path)
    one_run = "(select run_id from dim_run where run_name = 'npu_attn_mask_at60')"
    for statement in (
        f"update dim_run set attempt_count = 2 where run_id = {one_run}",
        f"update dim_step set is_current = false where run_id = {one_run} and step = 150",
        f"delete from dim_step where run_id = {one_run} and step in (20, 21)",
        f"insert into fct_parse_issue values ({one_run}, 'log.jsonl', 7, 'broken JSON', '{{', 84)",
        f"""delete from fct_metric where run_id = {one_run}
            and metric_id = (select metric_id from dim_metric where metric = 'time/step')""",
        "update dim_run set seed = '1' where role = 'candidate'",
        """update mart_divergence_onset set is_censored = false, onset_step = 5
            where metric = 'response/prompt_len/mean' and onset_kind = 'first_diff'
            and pair_id = (select min(pair_id) from dim_migration where pair_kind = 'migration')""",
        f"""update mart_time_shift set shift_kind = 'change', onset_step = 60, ratio = 1.5
            where metric = 'time/step' or (metric = 'task_time/p50'
            and pair_id = (select pair_id from dim_migration where candidate_run_id = {one_run}))""",
        f"update mart_anomaly set severity = 'error', step = 70 where run_id = {one_run}",
    ):
        con.execute(statement)
    yield con
    con.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_question_gives_the_known_answer(published, path):
    expected = expectations(path, "test")
    assert expected, f"{path.name} has no `-- test:` line"
    for expectation in expected:
        assert holds(published, path, expectation) is True, expectation


@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_a_question_finds_what_was_planted(planted, path):
    for expectation in expectations(path, "planted"):
        assert holds(planted, path, expectation) is True, expectation


def test_uncatalogued_metrics_are_listed(demo_home, tmp_path):
    path = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", path)
    path.chmod(0o644)
    question = project_folder("sql") / "queries" / "uncatalogued_metrics.sql"
    with duckdb.connect(path) as con:
        con.execute("update dim_metric set is_catalogued = false where metric = 'time/step'")
        for expectation in expectations(question, "planted"):
            assert holds(con, question, expectation) is True, expectation


def test_there_are_25_questions_and_each_has_a_title_that_asks():
    questions = list_questions()
    assert len(questions) >= 25
    assert len({title for _, title in questions}) == len(questions)
    for name, title in questions:
        assert title.endswith("?"), name


def test_parameters_are_declared_and_used():
    for path in FILES:
        sql = path.read_text(encoding="utf-8")
        body = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
        assert set(re.findall(r"\$([a-z_]+)", body)) == set(parameters_of(sql)), path.name


def test_a_parameter_changes_the_answer(published):
    default = run_question(published, "what_drifted_first", {})
    one = run_question(published, "what_drifted_first", {"top": "1"})
    assert (default.num_rows, one.num_rows) == (5, 1)


def test_an_unknown_parameter_is_named_with_the_known_ones(published):
    with pytest.raises(ValueError, match="has no parameter steps; it has candidate, metric"):
        run_question(published, "curve", {"steps": "1"})


def test_a_parameter_that_names_something_says_what_there_is():
    for path in FILES:
        sql = path.read_text(encoding="utf-8")
        named = {name for name, default in parameters_of(sql).items() if not default.isdigit()}
        assert named <= set(values_of(sql)) <= set(parameters_of(sql)), path.name


@pytest.mark.parametrize(
    ("question", "given", "sentence"),
    [
        ("curve", {"candidate": "nosuch"}, "No candidate is called nosuch; there are npu_attn_mask_at60, npu_ess_over"),
        ("curve", {"metric": "mismatch_k3"}, r"No metric is called mismatch_k3; there are 84, the nearest: .*_k3_kl"),
        ("is_the_floor_stable", {"metric": "mean"}, "mean may mean response/advantages/mean, .*; name one of them"),
        ("what_differs_at_a_step", {"step": "999"}, "No step is called 999; there are 1 to 150"),
        ("which_kernel_version_drifts_first", {"kind": "foo"}, "there are attention_kernel, hardware, precision"),
        ("which_component_drifts_first", {"kind": "foo"}, "No kind is called foo; there are decouple, drift"),
        ("what_leads_reward", {"onset": "foo"}, "No onset is called foo; there are decouple, drift"),
    ],
)
def test_a_value_that_nothing_has_is_refused_with_those_there_are(published, question, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        run_question(published, question, given)


@pytest.mark.parametrize("spelling", ["mismatch_k3_kl", "rollout_corr/k3_kl", "mismatch/mismatch_k3_kl"])
def test_a_metric_may_be_given_by_any_of_its_names(published, spelling):
    answer = run_question(published, "curve", {"metric": spelling})
    assert answer == run_question(published, "curve", {"metric": "mismatch/mismatch_k3_kl"})


@pytest.fixture
def own_data(demo_home, tmp_path):
    """A writable copy whose runs have other names than the examples."""
    path = tmp_path / "own.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", path)
    path.chmod(0o644)
    with duckdb.connect(path) as con:
        con.execute("update dim_migration set candidate_run_name = 'my_' || candidate_run_name")
        con.execute("update dim_component set component_kind = 'driver' where component_kind = 'attention_kernel'")
        yield con


def test_a_default_of_the_examples_is_never_an_empty_answer_about_own_data(own_data):
    asked = set()
    for path in FILES:
        defaults = parameters_of(path.read_text(encoding="utf-8"))
        if defaults.get("candidate") or path.stem == "which_kernel_version_drifts_first":
            name = "candidate" if "candidate" in defaults else "kind"
            with pytest.raises(
                ValueError, match=rf"give --param {name}=\.\.\., there are (my_npu_attn_mask_at60|driver), "
            ):
                run_question(own_data, path.stem, {})
            asked.add(path.stem)
    assert len(asked) == 6


def test_the_only_candidate_is_meant_where_there_is_one(own_data):
    own_data.execute("delete from dim_migration where candidate_run_name = 'my_npu_ess_overflow_at60'")
    assert run_question(own_data, "curve", {}).num_rows == 150
    own_data.execute("delete from dim_migration")
    with pytest.raises(ValueError, match=r"asks about the candidate npu_attn_mask_at60 .* holds none yet"):
        run_question(own_data, "curve", {})


def test_steps_are_missing_as_the_health_of_a_run_counts_them(own_data):
    own_data.execute(
        """
        delete from dim_step as steps using dim_run as runs
        where steps.run_id = runs.run_id
            and (runs.run_name = 'gpu_n1' and (steps.step % 10 <> 0 or steps.step = 50)
                or runs.run_name = 'gpu_n2' and steps.step = 2)
        """
    )
    models = project_folder("models")
    points = (models / "staging" / "stg_current_point.sql").read_text(encoding="utf-8")
    health = (models / "marts" / "mart_run_health.sql").read_text(encoding="utf-8")
    own_data.execute(f"create temp view stg_current_point as {points}")
    counted = own_data.execute(f"select run_name, missing_steps from ({health}) where missing_steps > 0").fetchall()
    listed = run_question(own_data, "missing_steps", {})
    sums = listed.group_by("run_name").aggregate([("missing", "sum")]).to_pylist()
    assert dict(counted) == {row["run_name"]: row["missing_sum"] for row in sums} == {"gpu_n1": 1, "gpu_n2": 1}


def test_what_changed_in_only_some_pairs_is_no_companion(demo_home, tmp_path):
    path = tmp_path / "copy.duckdb"
    shutil.copyfile(demo_home / "published" / "firstdrift.duckdb", path)
    path.chmod(0o644)
    with duckdb.connect(path) as con:
        con.execute(
            """
            delete from bridge_run_component
            where component_id in (select component_id from dim_component where component_kind = 'precision')
                and run_id in (select run_id from dim_run where run_name in ('npu_attn_mask_at60', 'gpu_n0'))
            """
        )
        (row,) = run_question(con, "which_hardware_drifts_first", {}).to_pylist()
    assert row["also_changed"] == "attention_kernel, rollout_engine"


def test_the_command_line_lists_and_asks(demo_home):
    listed = firstdrift(demo_home, "query", "--list").stdout
    assert all(name in listed for name, _ in list_questions())
    answer = firstdrift(demo_home, "query", "verdicts", "--format", "csv").stdout
    assert re.search(r"npu_attn_mask_at60.*rollout_or_weight_sync.*60", answer)


def test_a_client_of_duckdb_1_4_opens_the_file_and_asks_everything(demo_home):
    """`make test-clients` makes the environment; without it the test is skipped, visibly."""
    python = Path(os.environ.get("FIRSTDRIFT_CLIENT_PYTHON") or ".venv-client/bin/python")
    if not python.exists():
        pytest.skip(f"no environment with DuckDB 1.4: {python} does not exist (make test-clients)")
    done = subprocess.run(
        [str(python), str(CLIENT), str(demo_home / "published" / "firstdrift.duckdb"), str(FILES[0].parent)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].startswith("DuckDB 1.4")
    assert f"{len(FILES)} questions answered" in done.stdout


def test_shorthand_of_the_published_file(published):
    curve = published.execute("select * from pair_curve('npu_attn_mask_at60', 'mismatch/mismatch_k3_kl')").fetchall()
    assert len(curve) == 150
    runs = published.execute(
        "select distinct run_name from run_curve('time/step', run_pattern := 'gpu%') order by run_name"
    ).fetchall()
    assert runs == [("gpu_n0",), ("gpu_n1",), ("gpu_n2",)]
    verdicts = published.execute("select candidate_run_name, verdict from verdicts_by_name('sorting%')").fetchall()
    assert ("npu_attn_mask_at60", "drift") in verdicts
    hardware = published.execute("select run_name, component_name from runs_on('hardware')").fetchall()
    assert ("npu_n0", "lab-npu") in hardware
