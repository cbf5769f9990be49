import shutil
from pathlib import Path

import pytest

from tests.warehouse.small_star import put_dimensions
from warehouse.catalog import (
    CatalogError,
    ExtraMetric,
    catalog_hash,
    describe_metric,
    dimension_tables,
    load_catalog,
    resolve,
    search_metrics,
)
from warehouse.settings import project_folder
from warehouse.templates import PLACEHOLDER

CATALOG = load_catalog(project_folder("catalog"))
NAMES = (Path(__file__).parent / "document_metrics.txt").read_text(encoding="utf-8").split()
IS = "rollout_is/mismatch/rollout_is_"
SAMPLE = {"dataset": "AIME2024", "k": "16", "n": "16", "phase": "x"}


def resolved(name: str, framework: str = "", *others: str) -> dict:
    rows = {row["metric_name"]: row for row in resolve(CATALOG, [name, *others], framework).to_pylist()}
    return rows[name]


def test_the_document_names_103_metrics_and_the_catalogue_all_of_them():
    assert len(NAMES) == len(set(NAMES)) == 103


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_document_resolves(name):
    for framework in ("xtuner", "", "verl", "slime", "trl", "openrlhf", "nemo_rl", "roll", "areal"):
        row = resolved(name, framework)
        assert (row["metric"], row["factor"], row["equivalence"]) == (name, 1.0, "exact")
    metric = describe_metric(CATALOG, name)
    assert metric.category != "uncatalogued"
    assert metric.observed_low is not None
    assert metric.observed_high is not None
    assert metric.label_zh
    assert metric.meaning.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_rewritten_spelling_resolves(name):
    spellings = {name.replace("@", "_at_"), name.replace("@", "_"), name.replace("/", "_").replace("@", "_at_")}
    for spelling in spellings:
        assert resolved(spelling, "xtuner")["metric"] == name


@pytest.mark.parametrize("alias", CATALOG.aliases, ids=lambda a: f"{a.framework}:{a.name}")
def test_an_alias_is_merged_or_listed_as_related(alias):
    name = PLACEHOLDER.sub(lambda hole: SAMPLE[hole[1]], alias.name)
    metric = PLACEHOLDER.sub(lambda hole: SAMPLE[hole[1]], alias.metric)
    row = resolved(name, alias.framework)
    assert row["equivalence"] == alias.equivalence
    if alias.equivalence in ("exact", "scaled"):
        assert (row["metric"], row["factor"]) == (metric, alias.factor)
    else:
        assert (row["metric"], row["factor"], row["related_metric"]) == (name, 1.0, metric)


def test_one_name_means_different_things_in_two_frameworks():
    assert resolved("train/kl", "slime")["metric"] == "mismatch/mismatch_kl"
    assert resolved("train/kl", "openrlhf")["related_metric"] == "actor/kl_loss"
    assert resolved("train/kl")["equivalence"] == "uncatalogued"


def test_without_a_framework_an_alias_counts_where_all_agree():
    assert resolved("timing_s/gen")["metric"] == "time/generation"
    row = resolved("actor/grad_norm")
    assert (row["metric"], row["equivalence"]) == ("actor/grad_norm", "approximate")


def test_scaled_values_carry_their_factor():
    row = resolved("actor/lr(1e-4)", "verl")
    assert (row["metric"], row["factor"], row["equivalence"]) == ("actor/lr", 1e-4, "scaled")


def test_two_names_of_a_run_never_land_on_one_metric():
    rows = resolve(CATALOG, ["time/step", "timing_s/step", "timing/step"], "verl").to_pylist()
    assert [r["metric"] for r in rows] == ["time/step", "timing/step", "timing_s/step"]
    assert [r["related_metric"] for r in rows] == [None, "time/step", "time/step"]
    both = resolve(CATALOG, ["timing/gen", "timing_s/gen"], "verl").to_pylist()
    assert [r["metric"] for r in both] == ["timing/gen", "time/generation"]


def test_members_of_families_are_described():
    acc = describe_metric(CATALOG, "eval/SortDigits8_Acc_Mean@4")
    assert (acc.category, acc.domain.high, acc.is_family) == ("evaluation", 1.0, False)
    assert "SortDigits8" in acc.meaning
    assert "4 sampled" in acc.meaning
    worker = describe_metric(CATALOG, "train_metrics/worker_7/step_avg_grad_norm")
    assert (worker.scale, worker.causal_tier, worker.focus_rank) == ("log", 1, None)
    assert describe_metric(CATALOG, "task_time/p75").category == "task_time"


def test_what_nobody_described_is_kept_and_judged_by_name_and_data():
    row = resolved("my/own_number", "verl")
    assert (row["metric"], row["equivalence"]) == ("my/own_number", "uncatalogued")
    extras = [
        ExtraMetric("my/counter", 0, 900, is_integer=True, is_monotone=True),
        ExtraMetric("my/same", 3, 3),
        ExtraMetric("my/wide", 0.001, 50),
        ExtraMetric("my/signed", -1, 50),
        ExtraMetric("my/gc_time", 0.1, 0.2),
    ]
    table = {r["metric"]: r for r in dimension_tables(CATALOG, extras)["dim_metric"].to_pylist()}
    scales = {e.metric: table[e.metric]["scale"] for e in extras}
    assert scales == {
        "my/counter": "cumulative",
        "my/same": "constant",
        "my/wide": "log",
        "my/signed": "identity",
        "my/gc_time": "log",
    }
    assert {table[e.metric]["category"] for e in extras} == {"uncatalogued"}
    assert not any(table[e.metric]["is_catalogued"] for e in extras)
    assert (table["my/gc_time"]["stage"], table["my/gc_time"]["causal_tier"]) == ("time", 9)


def test_ten_categories_in_the_order_of_the_document():
    assert [c.category for c in sorted(CATALOG.categories, key=lambda c: c.ordinal)][:10] == [
        "reward", "response", "training", "entropy", "mismatch", "importance_sampling",
        "time", "task_time", "async_queue", "evaluation",
    ]  # fmt: skip


def test_nine_focus_metrics_on_seven_ranks():
    ranks = {m.metric: m.focus_rank for m in CATALOG.metrics if m.focus_rank}
    assert ranks == {
        "reward/avg_raw_reward": 1,
        "train_metrics/worker_0/step_avg_reduced_llm_loss": 2,
        "mismatch/mismatch_kl": 3,
        "mismatch/mismatch_k3_kl": 3,
        IS + "mean": 4,
        IS + "eff_sample_size": 5,
        "task_time/p95": 6,
        "task_time/p99_p50_ratio": 6,
        "time/step": 7,
    }


def test_places_in_the_chain_of_causes():
    tiers = {name: describe_metric(CATALOG, name).causal_tier for name in NAMES}
    assert {t for n, t in tiers.items() if n.startswith(("time/", "task_time/"))} == {9}
    assert {t for n, t in tiers.items() if "prompt_len" in n} == {0}
    assert {t for n, t in tiers.items() if n.startswith(IS)} == {3}
    assert tiers["train_metrics/worker_0/step_avg_grad_norm"] == 1
    assert tiers["response/rewards/mean"] == tiers["reward/avg_raw_reward"] == 5
    assert describe_metric(CATALOG, "response/prompt_len/mean").parity_class == "exact"


def test_practical_limits_name_their_source():
    with_limit = [m for m in CATALOG.metrics if m.practical_limit is not None]
    assert len(with_limit) > 40
    assert all(m.practical_limit_source for m in with_limit)


def test_the_dimensions_fit_the_schema(star):
    put_dimensions(star, CATALOG, ["my/own_number", "eval/X_Pass@2"])
    row = star.execute(
        "select category, domain_low, domain_high, domain_low_open, scale from dim_metric where metric = ?",
        [IS + "eff_sample_size"],
    ).fetchone()
    assert row == ("importance_sampling", 0.0, 1.0, True, "logit")
    orphans = star.execute(
        """
        select metric from dim_metric_alias
        where metric not in (select metric from dim_metric) and metric not like '%{%'
        except select 'eval/validation_Acc_Mean@1'
        """
    ).fetchall()
    assert orphans == []


def test_search_finds_by_name_meaning_label_and_alias():
    assert search_metrics(CATALOG, "eff_sample_size")[0].metric == IS + "eff_sample_size"
    assert "task_time/p99_p50_ratio" in {m.metric for m in search_metrics(CATALOG, "tail ratio")}
    assert "time/sync_weight" in {m.metric for m in search_metrics(CATALOG, "参数同步")}
    assert "mismatch/mismatch_k3_kl" in {m.metric for m in search_metrics(CATALOG, "gen_kl_error")}
    assert search_metrics(CATALOG, "no such thing") == ()


# What is added or wrong in a catalogue of one's own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(project_folder("catalog"), tmp_path / "catalog"))


def add_row(path: Path, row: str) -> int:
    """Append a line and return its number."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text + row + "\n", encoding="utf-8")
    return len(text.splitlines()) + 1


def metric_row(**cells: str) -> str:
    """Return a row of metrics/*.csv."""
    header = (project_folder("catalog") / "metrics" / "entropy.csv").read_text(encoding="utf-8").splitlines()[0]
    default = {
        "metric": "new/thing", "category": "entropy", "label_en": "Thing", "label_zh": "物", "meaning": "A thing.",
        "better": "none", "domain": "[0,1]", "scale": "identity", "parity_class": "paired", "provenance": "test",
        "confidence": "low",
    }  # fmt: skip
    return ",".join(f'"{(default | cells).get(column, "")}"' for column in header.split(","))


def test_a_metric_an_alias_or_a_rule_is_one_row(folder, star):
    add_row(folder / "metrics" / "entropy.csv", metric_row())
    add_row(folder / "aliases" / "verl.csv", "verl,,other/thing,new/thing,scaled,0.01,In percent.")
    add_row(
        folder / "rules" / "3_training.csv",
        'thing_small,expression,new/thing,"""new/thing"" <= 0.5",,,,warning,definition,It grew too large.',
    )
    changed = load_catalog(folder)
    assert catalog_hash(changed) != catalog_hash(CATALOG)
    row = resolve(changed, ["other/thing"], "verl").to_pylist()[0]
    assert (row["metric"], row["factor"], row["equivalence"]) == ("new/thing", 0.01, "scaled")
    assert "thing_small" in {r.rule_id for r in changed.rules}
    put_dimensions(star, changed)
    assert star.execute("select stage, label_zh from dim_metric where metric = 'new/thing'").fetchone() == (
        "rollout_or_weight_sync",
        "物",
    )


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ({"better": "sideways"}, "column better: 'sideways' is not known"),
        ({"category": "weather"}, "column category: 'weather' is not known"),
        ({"scale": "cubic"}, "column scale: 'cubic' is not known"),
        ({"domain": "0 to 1"}, "column domain: '0 to 1' is no interval"),
        ({"domain": "[1,0]"}, "column domain: '[1,0]' is empty"),
        ({"meaning": ""}, "column meaning: the cell is empty"),
        ({"focus_rank": "first"}, "column focus_rank: 'first' is not a number"),
        ({"practical_limit": "0.1"}, "limit and kind belong together"),
        ({"stage": "kitchen"}, "column stage: 'kitchen' is not known"),
    ],
)
def test_a_wrong_cell_is_told_with_file_and_line(folder, cells, fault):
    path = folder / "metrics" / "entropy.csv"
    line = add_row(path, metric_row(**cells))
    with pytest.raises(CatalogError) as error:
        load_catalog(folder)
    assert f"{path}:{line}: " in str(error.value)
    assert fault in str(error.value)


@pytest.mark.parametrize(
    ("file", "row", "fault"),
    [
        ("aliases/verl.csv", "verl,,a,time/step,scaled,,", "a scaled alias has no factor"),
        ("aliases/verl.csv", "verl,,a,time/step,exact,2,", "exact aliases are not multiplied"),
        ("aliases/verl.csv", "verl,,a,no/such,exact,,", "refers to the metric no/such"),
        ("aliases/verl.csv", "verl,,a,eval/{dataset}_Pass@1,exact,,", "{dataset} does not occur in the name"),
        ("aliases/verl.csv", "verl,,timing_s/gen,time/generation,exact,,", "is already described in aliases/verl.csv:"),
        ("aliases/verl.csv", "verl,,a", "3 cells where the first line has 7"),
        ("rules/3_training.csv", "r,guess,,,,,,error,code,M.", "column kind: 'guess' is not known"),
        ("rules/3_training.csv", "r,expression,a,,,,,error,code,M.", "column expression: the cell is empty"),
        ("rules/3_training.csv", "r,finite,,,,,,fatal,code,M.", "column severity: 'fatal' is not known"),
        ("rules/3_training.csv", "finite,finite,,,,,,error,code,M.", "the rule finite is already described"),
        ("contamination.csv", "empty_pack,no/such,M.", "refers to the metric no/such"),
    ],
)
def test_a_wrong_row_is_told_with_file_and_line(folder, file, row, fault):
    line = add_row(folder / file, row)
    with pytest.raises(CatalogError) as error:
        load_catalog(folder)
    assert f"{file}:{line}: " in str(error.value)
    assert fault in str(error.value)


def test_a_missing_file_or_column_is_told(folder):
    path = folder / "categories.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("label_zh", "label_cn", 1), encoding="utf-8")
    with pytest.raises(CatalogError, match=r"categories\.csv:1: the column label_zh is missing"):
        load_catalog(folder)
    path.unlink()
    with pytest.raises(CatalogError, match=r"categories\.csv: the file is missing"):
        load_catalog(folder)
