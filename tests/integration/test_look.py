"""The commands that look without changing anything: inspect, metrics, explain."""

import io
import json

import pytest
from rich.console import Console

from pipelines.explain import Evidence, print_evidence
from tests.integration.conftest import firstdrift, write_log

ESS = "rollout_is/mismatch/rollout_is_eff_sample_size"


def test_inspect_tells_what_a_log_holds(tmp_path):
    log = tmp_path / "run" / "log.jsonl"
    write_log(log, [1.0, float("inf"), 3.0], metric="my/own")
    log.write_text(log.read_text() + '{"step": 3, "data": {"my/ow')
    before = sorted(tmp_path.rglob("*"))
    (view,) = json.loads(firstdrift(tmp_path / "home", "inspect", str(log), "--json").stdout)
    assert view["log"]["points"] == 6
    assert view["log"]["value_kinds"] == {"finite": 4, "pos_inf": 2}
    assert view["uncatalogued"] == ["my/own"]
    (issue,) = view["log"]["issues"]
    assert issue["source_position"] == 4
    assert sorted(tmp_path.rglob("*")) == before
    text = firstdrift(tmp_path / "home", "inspect", str(log)).stdout
    assert "step 0 to 2" in text
    assert "2 pos_inf" in text
    assert "position 4" in text


def test_inspect_goes_through_a_manifest_and_names_what_is_missing(tmp_path):
    write_log(tmp_path / "gpu.jsonl", [1.0])
    (tmp_path / "migration.yaml").write_text(
        "migration: m\nruns:\n  - {name: gpu, log: gpu.jsonl, role: baseline}\n"
        "  - {name: npu, log: npu.jsonl, role: candidate}\n"
    )
    done = firstdrift(tmp_path / "home", "inspect", str(tmp_path), check=False)
    assert done.returncode == 1
    assert "gpu" in done.stdout
    assert "no such file" in " ".join(done.stdout.split())


def test_metrics_finds_a_metric_by_any_spelling_and_by_words(tmp_path):
    for spelling in (ESS, "rollout_corr/rollout_is_eff_sample_size"):
        (facts,) = json.loads(firstdrift(tmp_path, "metrics", spelling, "--json").stdout)
        assert facts["metric"] == ESS
        assert facts["focus_rank"] == 5
        assert {a["framework"] for a in facts["aliases"]} >= {"verl"}
        assert facts["rules"]
    names = [m["metric"] for m in json.loads(firstdrift(tmp_path, "metrics", "gradient", "--json").stdout)]
    assert "train_metrics/worker_0/step_avg_grad_norm" in names
    assert "Effective sample size" in firstdrift(tmp_path, "metrics", ESS).stdout


def test_metrics_says_when_nothing_fits(tmp_path):
    done = firstdrift(tmp_path, "metrics", "no such thing at all", check=False)
    assert done.returncode == 1
    assert "knows no metric" in done.stderr


@pytest.mark.parametrize("pair", ["npu_attn_mask_at60", "sorting-npu/npu_attn_mask_at60", "gpu_n0..npu_attn_mask_at60"])
def test_explain_gives_each_number_with_its_query(demo_home, pair):
    evidence = json.loads(firstdrift(demo_home, "explain", pair, "mismatch/mismatch_k3_kl", "--json").stdout)
    onsets = next(part for part in evidence if part["title"].startswith("Its onsets"))
    drift = next(row for row in records(onsets) if row["onset_kind"] == "drift")
    assert abs(drift["onset_step"] - 60) <= 3
    assert drift["statistic"] > drift["threshold"]
    again = json.loads(firstdrift(demo_home, "query", onsets["query"], "--json").stdout)
    assert [list(row.values()) for row in again] == onsets["rows"]


@pytest.mark.parametrize("metric", ["mismatch/mismatch_k3_kl", "response/rewards/mean"])
def test_explain_reckons_the_statistic_anew_from_the_published_differences(demo_home, metric):
    evidence = json.loads(firstdrift(demo_home, "explain", "npu_attn_mask_at60", metric, "--json").stdout)
    parts = {part["title"].split(":")[0]: part for part in evidence}
    drift = next(row for row in records(parts["Its onsets"]) if row["onset_kind"] == "drift")
    (again,) = records(parts["Statistic and interval of a step, reckoned anew from the differences"])
    for name in ("inflation", "statistic", "threshold", "p_value"):
        assert again[name] == pytest.approx(drift[name], rel=1e-9)
    if drift["shape"] == "step" or drift["is_censored"]:
        for name in ("onset_step", "onset_step_low", "onset_step_high"):
            assert again[name] == drift[name]
    assert drift["floor_source"] == "replicates"
    assert again["steps"] == drift["step_count"]


@pytest.mark.parametrize("name", ["mismatch_k3_kl", "rollout_corr/k3_kl"])
def test_explain_takes_every_name_of_a_metric(demo_home, name):
    asked, whole = (
        firstdrift(demo_home, "explain", "npu_attn_mask_at60", metric, "--json").stdout
        for metric in (name, "mismatch/mismatch_k3_kl")
    )
    assert asked == whole


def test_explain_has_no_onset_to_show_of_a_metric_that_did_not_drift(demo_home):
    parts = explained(demo_home, "npu_attn_mask_at60", "reward/avg_raw_reward")
    assert parts["Statistic and interval of a step, reckoned anew from the differences"][0]["onset_step"] is None
    assert "The steps around the onset" not in parts
    assert [row["step"] for row in parts["The last steps, since there is no onset"]] == list(range(142, 151))
    (means,) = parts["The difference over all steps: it has no onset"]
    assert means["steps"] == 150
    drifted = explained(demo_home, "npu_attn_mask_at60", "mismatch/mismatch_k3_kl")
    assert [row["is_after"] for row in drifted["The difference before and after the onset"]] == [False, True]
    assert len(drifted["The steps around the onset"]) == 9


def test_explain_keeps_names_whole_and_speaks_in_words_on_a_narrow_terminal(demo_home, monkeypatch):
    evidence = json.loads(firstdrift(demo_home, "explain", "npu_ess_overflow_at60", "--json").stdout)
    nearest = next(part for part in evidence if part["title"] == "Metrics nearest to a drift")
    written = io.StringIO()
    console = Console(file=written, width=80, highlight=False)
    monkeypatch.setenv("COLUMNS", "80")
    print_evidence([Evidence(**part) for part in evidence], console)
    text = written.getvalue()
    section = text[text.index("Metrics nearest to a drift") :].splitlines()
    assert [line.split()[0] for line in section[2:12]] == [row["metric"] for row in records(nearest)]
    assert "metric rollout_is/mismatch/rollout_is_eff_sample_size, step 60" in " ".join(text.split())
    assert "{'" not in text
    reasons = text[text.index("Its reasons") : text.index("What drifted")]
    assert "a first unequal value is rounding" in " ".join(reasons.split())


def explained(home, *arguments) -> dict[str, list[dict]]:
    evidence = json.loads(firstdrift(home, "explain", *arguments, "--json").stdout)
    return {part["title"]: records(part) for part in evidence}


def records(part: dict) -> list[dict]:
    return [dict(zip(part["columns"], row, strict=True)) for row in part["rows"]]


def test_explain_of_a_pair_shows_verdict_reasons_and_ranking(demo_home):
    text = firstdrift(demo_home, "explain", "npu_attn_mask_at60").stdout
    assert "What drifted, first to last" in text
    assert "The noise floor stems from" in " ".join(text.split())
    assert "drift" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(("nobody",), "There is no pair nobody"), (("gpu_n2",), "may mean several pairs"),
     (("npu_attn_mask_at60", "no/metric"), "No run of the pair")],
)  # fmt: skip
def test_explain_says_what_it_does_not_know(demo_home, arguments, sentence):
    done = firstdrift(demo_home, "explain", *arguments, check=False)
    assert done.returncode == 1
    assert sentence in " ".join(done.stderr.split())
