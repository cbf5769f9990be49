from pathlib import Path

import pytest

from warehouse.project import ModelError, column_lineage, load_project
from warehouse.schema import macro_files, schema_files
from warehouse.settings import project_folder

GOOD = """-- A row a run.
-- grain: run_id
-- materialized: {kind}
with runs as (select run_id, run_name from dim_run)

select
    run_id,  -- the run
    upper(run_name) as name  -- its name
from runs
"""


def write(folder: Path, name: str, text: str, layer: str = "staging") -> None:
    (folder / layer).mkdir(parents=True, exist_ok=True)
    (folder / layer / f"{name}.sql").write_text(text)


def read(folder: Path):
    return load_project(folder, schema_files())


def test_a_model_is_read_with_its_header_and_columns(tmp_path):
    write(tmp_path, "stg_run", GOOD.format(kind="view"))
    model = read(tmp_path).model("stg_run")
    assert model.description == "A row a run."
    assert model.grain == ("run_id",)
    assert model.materialization == "view"
    assert dict(model.columns) == {"run_id": "the run", "name": "its name"}
    assert model.depends_on == ("dim_run",)


def test_a_cte_that_shadows_the_table_it_reads_still_depends_on_it(tmp_path):
    text = GOOD.format(kind="view").replace("with runs as", "with dim_run as").replace("from runs", "from dim_run")
    write(tmp_path, "stg_run", text)
    assert read(tmp_path).model("stg_run").depends_on == ("dim_run",)


def test_models_come_after_those_they_read(tmp_path):
    write(tmp_path, "a_last", GOOD.format(kind="table").replace("dim_run", "z_first"), "marts")
    write(tmp_path, "z_first", GOOD.format(kind="view").replace("upper(run_name) as name", "run_name"), "marts")
    assert [m.name for m in read(tmp_path).models] == ["z_first", "a_last"]


def test_the_fingerprint_ignores_layout_and_notices_change_upstream(tmp_path):
    def fingerprints(upstream: str) -> dict[str, str]:
        write(tmp_path, "stg_run", upstream)
        write(
            tmp_path,
            "mart_run",
            GOOD.format(kind="table").replace("dim_run", "stg_run").replace("run_name", "name"),
            "marts",
        )
        return {m.name: m.fingerprint for m in read(tmp_path).models}

    before = fingerprints(GOOD.format(kind="view"))
    assert fingerprints(GOOD.format(kind="view").replace("    run_id,", "  run_id,")) == before
    after = fingerprints(GOOD.format(kind="view").replace("upper", "lower"))
    assert after["stg_run"] != before["stg_run"]
    assert after["mart_run"] != before["mart_run"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("-- grain: run_id\n", "", "lacks `-- grain"),
        ("-- materialized: view\n", "", "lacks `-- materialized"),
        ("materialized: view", "materialized: cube", "is not known"),
        ("-- A row a run.\n", "", "lacks a sentence"),
        ("  -- the run", "", "column run_id has no comment"),
        ("grain: run_id", "grain: run", "does not put out"),
        ("from dim_run", "from nowhere", "neither a model nor a table"),
        ("from runs", "from runs; select 1", "one SELECT and nothing else"),
        ("select\n", "selekt\n", "not SQL"),
        ("upper(run_name) as name", "*", "name every output column"),
    ],
)
def test_a_fault_in_a_model_is_one_sentence_that_names_the_file(tmp_path, old, new, sentence):
    text = GOOD.format(kind="view")
    assert old in text
    write(tmp_path, "stg_run", text.replace(old, new))
    with pytest.raises(ModelError, match=r"stg_run\.sql") as raised:
        read(tmp_path)
    assert sentence in str(raised.value)


def test_models_that_read_each_other_are_refused(tmp_path):
    write(tmp_path, "a", GOOD.format(kind="view").replace("dim_run", "b"))
    write(tmp_path, "b", GOOD.format(kind="view").replace("dim_run", "a"))
    with pytest.raises(ModelError, match="in a circle"):
        read(tmp_path)


def test_column_lineage_names_the_source_columns(tmp_path):
    write(tmp_path, "stg_run", GOOD.format(kind="view"))
    model = read(tmp_path).model("stg_run")
    found = column_lineage(model, {"dim_run": ["run_id", "run_name"]})
    assert found == {"run_id": [("dim_run", "run_id")], "name": [("dim_run", "run_name")]}


def test_every_model_of_the_project_is_read():
    project = load_project(project_folder("models"), schema_files(), macro_files())
    assert "int_pair_point" in [m.name for m in project.models]
