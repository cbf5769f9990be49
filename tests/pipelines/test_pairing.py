import shutil

import pytest

from pipelines.declaring import declare_pair
from pipelines.discovery import find_manifests
from pipelines.landing import ingest_migration
from pipelines.manifest import ManifestError
from pipelines.pairing import explain_silence, propose_pairs
from tests.integration.conftest import write_log
from warehouse.settings import settings_for


@pytest.fixture
def settings(tmp_path):
    settings = settings_for(tmp_path)
    for name, hardware, extra in (
        ("run_a", "H100", ""),
        ("run_b", "910B", ", data_order: other"),
        ("run_c", "H100", ""),
    ):
        folder = settings.landing / "m" / name
        write_log(folder / "log.jsonl", [1.0])
        (folder / "run.yaml").write_text(
            f"components: {{hardware: {hardware}}}\nrecipe: {{model: qwen3, seed: 1{extra}}}\n"
        )
    ingest(settings)
    return settings


def ingest(settings):
    found = find_manifests(settings.landing)
    assert not found.failures
    for manifest in found.manifests:
        ingest_migration(manifest, settings.lake)
    return found.manifests


def test_runs_of_one_recipe_on_different_components_are_proposed_with_the_reason(settings):
    proposals = propose_pairs(settings)
    assert [p.runs for p in proposals] == [("run_a", "run_b"), ("run_b", "run_c")]
    first = proposals[0]
    assert first.reason == "one recipe (model qwen3, seed 1) on different components"
    assert first.moved == ("hardware: H100 to 910B",)
    assert first.also_differs == ("data_order: not stated, other",)


def test_runs_of_different_models_are_not_proposed(settings):
    sidecar = settings.landing / "m" / "run_b" / "run.yaml"
    sidecar.write_text(sidecar.read_text().replace("qwen3", "llama"))
    ingest(settings)
    assert not propose_pairs(settings)


def test_a_declared_pair_is_written_down_and_no_run_is_lost(settings):
    declare_pair(settings.landing, "m", "run_a", "run_b")
    (manifest,) = ingest(settings)
    assert manifest.how_paired == "declared"
    assert {r.name: (r.role, r.baseline) for r in manifest.runs} == {
        "run_a": ("baseline", ""),
        "run_b": ("candidate", "run_a"),
        "run_c": ("candidate", ""),
    }
    assert manifest.runs[0].components[0].name == "H100"
    assert {r.name: r.recipe.get("data_order") for r in manifest.runs}["run_b"] == "other"
    assert [p.runs for p in propose_pairs(settings)] == [("run_b", "run_c")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(("x", "run_a", "run_b"), "no migration x"), (("m", "run_a", "run_x"), "no run run_x"),
     (("m", "run_a", "run_a"), "against itself")],
)  # fmt: skip
def test_what_can_not_be_paired_is_said(settings, arguments, sentence):
    with pytest.raises(ManifestError, match=sentence):
        declare_pair(settings.landing, *arguments)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("recipe: {", "#", "no recipe is stated"),
        ("model: qwen3, seed: 1", "model: NAME", "no other run has the same recipe"),
        ("910B", "H100", "no component is stated that differs"),
    ],
)
def test_where_nothing_is_proposed_the_reason_is_true(settings, old, new, reason):
    for name in ("run_a", "run_b", "run_c"):
        sidecar = settings.landing / "m" / name / "run.yaml"
        sidecar.write_text(sidecar.read_text().replace(old, new.replace("NAME", name)))
    shutil.rmtree(settings.lake)
    ingest(settings)
    assert not propose_pairs(settings)
    (why,) = explain_silence(settings)
    assert (why.migration, why.unpaired) == ("m", 3)
    assert reason in why.reason


def test_where_all_runs_are_paired_that_is_the_reason(settings):
    declare_pair(settings.landing, "m", "run_a", "run_b")
    declare_pair(settings.landing, "m", "run_b", "run_c")
    ingest(settings)
    (why,) = explain_silence(settings)
    assert (why.unpaired, why.reason) == (0, "every run is in a pair or a replicate")
