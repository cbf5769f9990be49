import pytest

from pipelines.manifest import ManifestError, RunEntry, checked_name, infer_manifest, read_manifest, write_runs
from warehouse.lake import Component

GOOD = """\
migration: to-npu
recipe: {model: qwen3, dataset: math, algorithm: GRPO, seed: 1}
runs:
  - name: gpu
    log: gpu.jsonl
    role: baseline
    components: {hardware: H100, attention_kernel: {name: flash, version: "3.1"}}
  - name: gpu_again
    log: gpu2.jsonl
    role: replicate
    of: gpu
  - name: npu
    log: npu.jsonl
    role: candidate
    baseline: gpu
    components: {hardware: 910B, rollout_engine: vllm@0.11}
"""


def manifest(tmp_path, text):
    path = tmp_path / "migration.yaml"
    path.write_text(text, encoding="utf-8")
    return read_manifest(path)


def test_a_manifest_is_read(tmp_path):
    read = manifest(tmp_path, GOOD)
    assert read.migration == "to-npu"
    assert read.recipe == {"model": "qwen3", "dataset": "math", "algorithm": "GRPO", "seed": "1"}
    assert [(r.name, r.role, r.baseline, r.of) for r in read.runs] == [
        ("gpu", "baseline", "", ""),
        ("gpu_again", "replicate", "", "gpu"),
        ("npu", "candidate", "gpu", ""),
    ]
    assert read.runs[0].components == (Component("hardware", "H100"), Component("attention_kernel", "flash", "3.1"))
    assert Component("rollout_engine", "vllm", "0.11") in read.runs[2].components


def test_a_version_stays_as_written(tmp_path):
    read = manifest(tmp_path, GOOD.replace('"3.1"', "3.10"))
    assert read.runs[0].components[1].version == "3.10"


def test_the_only_baseline_need_not_be_named(tmp_path):
    read = manifest(tmp_path, GOOD.replace("    baseline: gpu\n", "").replace("    of: gpu\n", ""))
    assert read.runs[2].baseline == "gpu"
    assert read.runs[1].of == "gpu"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("migration: to-npu\n", "", "migration is missing"),
        ("migration: to-npu", "migration: to/npu", "can't be used as a name"),
        ("migration: to-npu", "migration: ../up", "can't be used as a name"),
        ("recipe:", "recipes:", "unknown key `recipes`"),
        ("model: qwen3", "modle: qwen3", "recipe has the unknown key `modle`"),
        ("    of: gpu", "    off: gpu", "run gpu_again has the unknown key `off`"),
        ("hardware: 910B", "hardwear: 910B", "unknown key `hardwear`"),
        ("role: baseline", "role: base", "it must be one of baseline, candidate, replicate"),
        ("role: baseline", "role: candidate", "no run has the role baseline"),
        ("baseline: gpu", "baseline: tpu", "there is no run of that name"),
        ("of: gpu", "of: gpu_again", "names itself"),
        ("name: gpu_again", "name: gpu", "two runs are called gpu"),
        ("    log: npu.jsonl\n", "", "run npu has no log"),
        ("name: npu\n", "name: a b\n", "can't be used as a name"),
        ("runs:\n", "runs: [\n", "line"),
    ],
)
def test_each_mistake_has_its_sentence(tmp_path, old, new, sentence):
    assert old in GOOD
    with pytest.raises(ManifestError) as raised:
        manifest(tmp_path, GOOD.replace(old, new))
    assert sentence in str(raised.value)
    assert "migration.yaml" in str(raised.value)


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b\n", "migration: m\n", "migration: m\nruns: []\n"])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    with pytest.raises(ManifestError):
        manifest(tmp_path, text)


def test_a_manifest_may_include_another(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "migration.yaml").write_text(GOOD, encoding="utf-8")
    read = manifest(tmp_path, "include: there\n")
    assert read.migration == "to-npu"
    assert read.folder == tmp_path / "there"


def test_an_include_of_nothing_is_refused(tmp_path):
    with pytest.raises(ManifestError, match=r"no migration\.yaml lies"):
        manifest(tmp_path, "include: nowhere\n")


def folder(tmp_path, *names):
    found = {}
    for name in names:
        (tmp_path / name).mkdir()
        found[name] = tmp_path / name
    return found


def test_the_only_run_called_a_baseline_is_one(tmp_path):
    read = infer_manifest(tmp_path, folder(tmp_path, "gpu_run", "npu_run"))
    assert read.how_paired == "inferred"
    assert [(r.name, r.role, r.baseline) for r in read.runs] == [
        ("gpu_run", "baseline", ""),
        ("npu_run", "candidate", "gpu_run"),
    ]


@pytest.mark.parametrize("names", [("run_a", "run_b"), ("gpu_1", "gpu_2", "npu"), ("gpu",)])
def test_ambiguous_folders_make_no_pair(tmp_path, names):
    read = infer_manifest(tmp_path, folder(tmp_path, *names))
    assert all(r.baseline == "" and r.role == "candidate" for r in read.runs)


def test_a_sidecar_says_what_the_names_do_not(tmp_path):
    members = folder(tmp_path, "run_a", "run_b")
    (members["run_a"] / "run.yaml").write_text("role: baseline\ncomponents: {hardware: H100}\n", encoding="utf-8")
    read = infer_manifest(tmp_path, members)
    assert [(r.name, r.role, r.baseline) for r in read.runs] == [
        ("run_a", "baseline", ""),
        ("run_b", "candidate", "run_a"),
    ]
    assert read.runs[0].components == (Component("hardware", "H100"),)


def test_a_manifest_grows_run_by_run(tmp_path):
    path = tmp_path / "m" / "migration.yaml"
    write_runs(path, "m", [RunEntry("npu", "b.jsonl", "candidate", baseline="gpu")], {"model": "x"})
    entry = RunEntry("gpu", "a.jsonl", "baseline", components=(Component("hardware", "H100", "80GB"),))
    write_runs(path, "m", [entry], {})
    read = read_manifest(path)
    assert {r.name: r.role for r in read.runs} == {"npu": "candidate", "gpu": "baseline"}
    assert read.recipe == {"model": "x"}
    assert read.runs[1].components == (Component("hardware", "H100", "80GB"),)


def test_a_faulty_entry_leaves_the_manifest_as_it_was(tmp_path):
    path = tmp_path / "migration.yaml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ManifestError):
        write_runs(path, "to-npu", [RunEntry("x", "x.jsonl", "chief")], {})
    assert path.read_text(encoding="utf-8") == GOOD


@pytest.mark.parametrize("name", ["migration.json", "Migration.JSON", "c\n", "x" * 201, "..", "a/b"])
def test_a_name_that_the_lake_can_not_hold_is_refused(name):
    with pytest.raises(ManifestError, match="name of run 1"):
        checked_name("name of run 1", name)
    assert checked_name("name of run 1", "migration.jsonl") == "migration.jsonl"
    assert checked_name("name of run 1", "x" * 200)
