import duckdb
import polars as pl
import pytest

from pipelines.ingest.base import ParseIssue, issues_table, point_table
from warehouse.catalog import load_catalog
from warehouse.contract import stable_id
from warehouse.lake import Component, MigrationRecord, RunRecord, write_migration, write_run
from warehouse.load import load_lake
from warehouse.settings import project_folder

CATALOG = load_catalog(project_folder("catalog"))
NAN, INF = float("nan"), float("inf")


def put_run(lake, points, name="r", content="1", migration="m", others=(), issues=(), **facts):
    """Write a run to the lake; `points` are (metric, attempt, step, value) in the order of writing."""
    frame = pl.DataFrame(
        [
            {"metric_name": m, "attempt": a, "step": s, "value": v, "source_file": "f", "source_position": n}
            for n, (m, a, s, v) in enumerate(points, start=1)
        ],
        schema={
            "metric_name": pl.String,
            "attempt": pl.Int32,
            "step": pl.Int64,
            "value": pl.Float64,
            "source_file": pl.String,
            "source_position": pl.Int64,
        },
    )
    digest = content.ljust(64, "0")
    write_run(lake, migration, name, digest, point_table(frame), issues_table(issues))
    record = RunRecord(
        name=name, role=facts.pop("role", "baseline"), source="f", content_hash=digest, log_format="t",
        log_precision="float64", **facts
    )  # fmt: skip
    write_migration(lake, MigrationRecord(migration, (*others, record)))
    return record


def current(con, metric="reward"):
    return con.execute(
        """
        select attempt, step, write_no, value, is_current from fct_metric
        where metric_name = ? order by attempt, step, write_no
        """,
        [metric],
    ).fetchall()


def everything(con):
    tables = ("fct_metric", "fct_parse_issue", "dim_run", "dim_step", "dim_migration", "dim_metric", "dim_component")
    return {table: con.execute(f"select * from {table} order by all").fetchall() for table in tables}


def test_the_same_log_twice_changes_nothing(star, tmp_path):
    put_run(tmp_path, [("reward", 1, 1, 0.5), ("reward", 1, 2, NAN), ("reward", 1, 3, INF)])
    first = load_lake(star, tmp_path, CATALOG)
    assert first.new_runs == ("m/r",)
    assert first.added_points == 3
    before = everything(star)
    second = load_lake(star, tmp_path, CATALOG)
    assert (second.added_points, second.unchanged_runs) == (0, ("m/r",))
    assert repr(everything(star)) == repr(before)


def test_a_grown_log_adds_only_its_new_points(star, tmp_path):
    points = [("reward", 1, 1, 0.5), ("reward", 1, 2, NAN)]
    put_run(tmp_path, points)
    load_lake(star, tmp_path, CATALOG)
    put_run(tmp_path, [*points, ("reward", 1, 3, 0.7)], content="2")
    result = load_lake(star, tmp_path, CATALOG)
    assert (result.grown_runs, result.replaced_runs, result.added_points) == (("m/r",), (), 1)
    assert [row[1] for row in current(star)] == [1, 2, 3]
    assert star.execute("select last_step, point_count from dim_run").fetchall() == [(3, 3)]


def test_a_changed_log_replaces_the_run(star, tmp_path):
    put_run(tmp_path, [("reward", 1, 1, 0.5), ("reward", 1, 2, 0.6)])
    load_lake(star, tmp_path, CATALOG)
    put_run(tmp_path, [("reward", 1, 1, 0.5), ("reward", 1, 2, 0.9)], content="2")
    result = load_lake(star, tmp_path, CATALOG)
    assert (result.replaced_runs, result.grown_runs) == (("m/r",), ())
    assert [row[3] for row in current(star)] == [0.5, 0.9]


def test_a_run_that_left_the_lake_is_removed(star, tmp_path):
    keep = put_run(tmp_path, [("reward", 1, 1, 0.5)], name="keep")
    put_run(tmp_path, [("reward", 1, 1, 0.5)], name="gone", others=(keep,))
    load_lake(star, tmp_path, CATALOG)
    write_migration(tmp_path, MigrationRecord("m", (keep,)))
    result = load_lake(star, tmp_path, CATALOG)
    assert result.removed_runs == ("m/gone",)
    for table in ("fct_metric", "dim_run", "dim_step"):
        assert star.execute(f"select distinct run_id from {table}").fetchall() == [(stable_id("m", "keep"),)]


def test_the_last_attempt_is_current_and_the_given_up_tail_is_not(star, tmp_path):
    first = [("reward", 1, step, float(step)) for step in range(1, 6)]
    second = [("reward", 2, step, step + 0.5) for step in (3, 4)]
    put_run(tmp_path, first + second)
    load_lake(star, tmp_path, CATALOG)
    assert [(a, s) for a, s, _, _, is_current in current(star) if is_current] == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert len(current(star)) == 7
    steps = star.execute("select attempt, step, is_current from dim_step order by attempt, step").fetchall()
    assert steps == [
        (1, 1, True), (1, 2, True), (1, 3, False), (1, 4, False), (1, 5, False), (2, 3, True), (2, 4, True)
    ]  # fmt: skip


def test_a_restart_that_arrives_later_takes_over(star, tmp_path):
    first = [("reward", 1, step, float(step)) for step in range(1, 4)]
    put_run(tmp_path, first)
    load_lake(star, tmp_path, CATALOG)
    put_run(tmp_path, [*first, ("reward", 2, 3, 9.0)], content="2")
    result = load_lake(star, tmp_path, CATALOG)
    assert result.added_points == 1
    assert [(a, s) for a, s, _, _, is_current in current(star) if is_current] == [(1, 1), (1, 2), (2, 3)]


def test_the_last_write_of_a_step_is_current(star, tmp_path):
    put_run(tmp_path, [("reward", 1, 1, 0.1), ("reward", 1, 1, 0.2), ("reward", 1, 2, 0.3)])
    load_lake(star, tmp_path, CATALOG)
    assert [(w, v, c) for _, _, w, v, c in current(star)] == [(1, 0.1, False), (2, 0.2, True), (1, 0.3, True)]


def test_a_second_write_that_arrives_later_takes_over(star, tmp_path):
    put_run(tmp_path, [("reward", 1, 1, 0.1)])
    load_lake(star, tmp_path, CATALOG)
    put_run(tmp_path, [("reward", 1, 1, 0.1), ("reward", 1, 1, 0.2)], content="2")
    load_lake(star, tmp_path, CATALOG)
    assert [(w, c) for _, _, w, _, c in current(star)] == [(1, False), (2, True)]


def test_issues_are_counted_and_kept(star, tmp_path):
    issues = [ParseIssue("f", 7, "the line is torn", '{"step', 3)]
    put_run(tmp_path, [("reward", 1, 1, 0.5)], issues=issues)
    load_lake(star, tmp_path, CATALOG)
    row = star.execute("select source_position, reason, snippet, lost_points from fct_parse_issue").fetchall()
    assert row == [(7, "the line is torn", '{"step', 3)]
    assert star.execute("select issue_count from dim_run").fetchall() == [(1,)]


def test_a_failing_load_leaves_the_star_as_it_was(star, tmp_path):
    put_run(tmp_path, [("reward", 1, 1, 0.5)])
    load_lake(star, tmp_path, CATALOG)
    before = everything(star)
    put_run(tmp_path, [("reward", 1, 1, 0.9)], content="2")
    star.execute("drop table dim_step")
    star.execute("create view dim_step as select 1 as run_id")
    with pytest.raises(duckdb.Error):
        load_lake(star, tmp_path, CATALOG)
    star.execute("drop view dim_step")
    assert star.execute("select value from fct_metric").fetchall() == [(0.5,)]
    assert before["dim_run"] == star.execute("select * from dim_run").fetchall()


GPU = (Component("hardware", "H100"),)
NPU = (Component("hardware", "910B"),)


def runs_of(lake, *specs):
    others = ()
    for name, facts in specs:
        others = (*others, put_run(lake, [("reward", 1, 1, 0.5)], name=name, others=others, **facts))
    return others


def test_pairs_are_candidates_with_their_baseline_and_replicates_of_one_stack(star, tmp_path):
    runs_of(
        tmp_path,
        ("gpu", {"role": "baseline", "components": GPU}),
        ("gpu_b", {"role": "replicate", "replicate_of": "gpu"}),
        ("npu", {"role": "candidate", "baseline": "gpu", "components": NPU}),
        ("npu_b", {"role": "replicate", "components": NPU}),
        ("npu_c", {"role": "replicate", "replicate_of": "npu"}),
    )
    load_lake(star, tmp_path, CATALOG)
    pairs = star.execute(
        "select pair_kind, baseline_run_name, candidate_run_name from dim_migration order by all"
    ).fetchall()
    assert pairs == [("migration", "gpu", "npu"), ("replicate", "gpu", "gpu_b"), ("replicate", "npu_b", "npu_c")]
    stacks = dict(star.execute("select run_name, stack from dim_run").fetchall())
    assert stacks["gpu"] == stacks["gpu_b"] != stacks["npu"]
    assert stacks["npu"] == stacks["npu_b"] == stacks["npu_c"]


def test_a_pair_is_judged_anew_when_its_runs_or_the_replicates_change_and_not_otherwise(star, tmp_path):
    def versions():
        load_lake(star, tmp_path, CATALOG)
        return dict(star.execute("select candidate_run_name, input_version from dim_migration").fetchall())

    specs = {
        "gpu": {"role": "baseline", "components": GPU},
        "gpu_b": {"role": "replicate", "replicate_of": "gpu"},
        "npu": {"role": "candidate", "baseline": "gpu", "components": NPU},
        "npu_x": {"role": "candidate", "baseline": "gpu", "components": NPU},
    }
    runs_of(tmp_path, *specs.items())
    before = versions()
    runs_of(tmp_path, *{**specs, "npu_x": {**specs["npu_x"], "content": "2"}}.items())
    grown = versions()
    assert {n for n in before if before[n] != grown[n]} == {"npu_x"}
    runs_of(tmp_path, *{**specs, "gpu_b": {**specs["gpu_b"], "content": "3"}}.items())
    other_floor = versions()
    assert other_floor["npu"] != before["npu"]


def test_names_of_one_metric_are_merged_and_scaled_ones_converted(star, tmp_path):
    put_run(tmp_path, [("critic/score/mean", 1, 1, 0.5)], framework="verl")
    load_lake(star, tmp_path, CATALOG)
    row = star.execute(
        "select m.metric, f.metric_name from fct_metric as f inner join dim_metric as m using (metric_id)"
    ).fetchall()
    assert row == [("response/rewards/mean", "critic/score/mean")]


def test_a_metric_that_nobody_described_is_kept_and_judged_by_its_data(star, tmp_path):
    def inferred():
        load_lake(star, tmp_path, CATALOG)
        return star.execute("select metric, scale from dim_metric where category = 'uncatalogued'").fetchall()

    put_run(tmp_path, [("my/own_thing", 1, step, 7.0) for step in range(1, 4)])
    assert inferred() == [("my/own_thing", "constant")]
    put_run(tmp_path, [("my/own_thing", 1, step, 7.0 + step) for step in range(1, 5)], content="2")
    assert inferred() == [("my/own_thing", "cumulative")]
    put_run(tmp_path, [("my/other_thing", 1, 1, 0.5)], content="3")
    assert [metric for metric, _ in inferred()] == ["my/other_thing"]


def test_members_of_a_family_stay_when_another_run_brings_an_unknown_metric(star, tmp_path):
    put_run(tmp_path, [("eval/Digits_Pass@2", 1, 1, 0.5), ("eval/Digits_Pass@2", 1, 2, 0.25)])
    load_lake(star, tmp_path, CATALOG)
    put_run(tmp_path, [("nobody/knows/this", 1, 1, 3.0)], migration="later")
    load_lake(star, tmp_path, CATALOG)
    known = star.execute(
        "select distinct metric from fct_metric left join dim_metric using (metric_id) order by metric"
    ).fetchall()
    assert known == [("eval/Digits_Pass@2",), ("nobody/knows/this",)]
