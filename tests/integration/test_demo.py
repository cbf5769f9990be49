"""The whole way on the example logs, with their known answers."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.integration.conftest import firstdrift

LOSS = "train_metrics/worker_0/step_avg_reduced_llm_loss"


@pytest.fixture(scope="module")
def published(demo_home):
    con = duckdb.connect(demo_home / "published" / "firstdrift.duckdb", read_only=True)
    yield con
    con.close()


def test_the_demo_names_what_drifted_first(demo_home):
    text = (demo_home / "first_output.txt").read_text()
    assert "npu_attn_mask_at60" in text
    assert "rollout_or_weight_sync" in text
    assert "71,550 points added" in text
    assert "not finite" in text


def test_a_second_demo_takes_in_nothing_and_says_so(demo_home):
    done = firstdrift(demo_home, "demo")
    assert "Nothing new" in done.stdout
    assert "Already published" in done.stdout


def test_attn_mask_moves_a_mismatch_or_sampling_metric_first_at_step_60(published):
    rows = published.execute(
        """
        select f.metric, f.category, f.stage, f.onset_step, v.verdict
        from mart_first_drift as f
        inner join dim_migration as p on f.pair_id = p.pair_id
        inner join mart_pair_verdict as v on f.pair_id = v.pair_id
        where p.candidate_run_name = 'npu_attn_mask_at60' and f.rank = 1
        """
    ).fetchall()
    assert len(rows) == 1
    metric, category, stage, onset, verdict = rows[0]
    assert category in ("mismatch", "importance_sampling"), metric
    assert stage == "rollout_or_weight_sync"
    assert abs(onset - 60) <= 3
    assert verdict == "drift"


def test_ess_overflow_is_flagged_from_step_60_and_is_no_drift(published):
    verdict = published.execute(
        """
        select v.verdict, v.nonfinite_metrics::varchar
        from mart_pair_verdict as v
        inner join dim_migration as p on v.pair_id = p.pair_id
        where p.candidate_run_name = 'npu_ess_overflow_at60'
        """
    ).fetchall()
    assert len(verdict) == 1
    assert verdict[0][0] != "drift"
    assert "eff_sample_size" in verdict[0][1]
    anomalies = published.execute(
        """
        select a.metric, min(a.step), bool_or(a.observed ilike '%inf%')
        from mart_anomaly as a
        inner join dim_run as r on a.run_id = r.run_id
        where r.run_name = 'npu_ess_overflow_at60' and a.severity = 'error'
        group by a.metric
        """
    ).fetchall()
    assert [(m, s) for m, s, _ in anomalies] == [("rollout_is/mismatch/rollout_is_eff_sample_size", 60)]
    assert anomalies[0][2]


def test_the_loss_of_two_equal_runs_first_differs_at_step_2(published, demo_home):
    rows = published.execute(
        f"""
        select o.onset_step from mart_divergence_onset as o
        inner join dim_migration as p on o.pair_id = p.pair_id
        where p.baseline_run_name = 'gpu_n0' and p.candidate_run_name = 'gpu_n1'
            and o.metric = '{LOSS}' and o.onset_kind = 'first_diff'
        """
    ).fetchall()
    assert rows == [(2,)]
    assert "gpu_n0, gpu_n1" in (demo_home / "first_output.txt").read_text()


def test_every_published_column_has_a_comment_and_a_type_that_other_tools_read(published):
    rows = published.execute(
        """
        select table_name, column_name, data_type
        from duckdb_columns()
        where schema_name = 'main' and not internal
            and (comment is null or data_type in ('HUGEINT', 'UHUGEINT', 'NULL', '"NULL"'))
        """
    ).fetchall()
    assert not rows


def test_equal_runs_never_drift(published):
    rows = published.execute(
        """
        select p.baseline_run_name, p.candidate_run_name
        from mart_pair_verdict as v
        inner join dim_migration as p on v.pair_id = p.pair_id
        where p.pair_kind = 'replicate' and v.verdict = 'drift'
        """
    ).fetchall()
    assert not rows


def test_show_speaks_json(demo_home):
    views = json.loads(firstdrift(demo_home, "show", "--json").stdout)
    pairs = {p["candidate"]: p for v in views for p in v["pairs"] if p["pair_kind"] == "migration"}
    assert pairs["npu_attn_mask_at60"]["moved"][0]["rank"] == 1
    assert pairs["npu_attn_mask_at60"]["parity"] == "equal at every step"


def test_query_speaks_every_format(demo_home, tmp_path):
    sql = "select run_name, 'inf'::double as x from dim_run order by run_name limit 2"
    assert json.loads(firstdrift(demo_home, "query", sql, "--json").stdout)[0] == {
        "run_name": "gpu_n0",
        "x": "Infinity",
    }
    assert firstdrift(demo_home, "query", sql, "-f", "csv").stdout.splitlines()[0] == '"run_name","x"'
    assert "gpu_n1" in firstdrift(demo_home, "query", sql).stdout
    target = tmp_path / "x.parquet"
    firstdrift(demo_home, "query", sql, "-f", "parquet", "-o", str(target))
    assert pq.read_metadata(target).num_rows == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("query", "selct 1"), "syntax error"),
        (("query", "no_such_question"), "There is no question called no_such_question"),
        (("query", "create table x as select 1"), "read-only"),
        (("query", "select 1", "-f", "parquet"), "name a file with --output"),
        (("query", "select 1", "-f", "xml"), "write one of table, csv, json, parquet"),
        (("show", "nowhere"), "There is no migration called nowhere; there are: sorting-npu"),
        (("add", "m", "r", "/no/such/log"), "there is no such file or folder"),
        (("add", "m", "r"), "Name the log of r"),
        (("add", "/no/such/folder"), "no migration.yaml lies there"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_1(demo_home, arguments, sentence):
    done = firstdrift(demo_home, *arguments, check=False)
    assert done.returncode == 1
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["show", "run"])
def test_an_empty_home_is_said_plainly(tmp_path, command):
    done = firstdrift(tmp_path, command, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "published" in done.stderr or "holds no logs" in done.stderr
