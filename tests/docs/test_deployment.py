"""The files of deploy/ fit together, and fit what docs/deployment.md says of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipelines.definitions import defs
from tests.conftest import PROJECT
from warehouse import settings

DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PAGE = (PROJECT / "docs" / "deployment.md").read_text(encoding="utf-8")
INSTALLED = "/opt/firstdrift/venv/bin"


def test_units_are_what_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    here = str(Path(sys.executable).parent)
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        assert INSTALLED in text
        (tmp_path / unit.name).write_text(text.replace(INSTALLED, here), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *sorted(str(path) for path in tmp_path.glob("*.service"))],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "firstdrift" in line]
    assert not said, done.stderr


def test_units_start_programs_of_the_environment():
    for unit in UNITS:
        (program,) = re.findall(rf"^ExecStart={INSTALLED}/(\S+)", unit.read_text(encoding="utf-8"), re.M)
        assert Path(sys.executable).with_name(program).is_file()


def test_the_environment_names_every_variable_of_a_team():
    text = (DEPLOY / "environment").read_text(encoding="utf-8")
    named = set(re.findall(r"^#?([A-Z_]+)=", text, re.M))
    known = {value for name, value in vars(settings).items() if name.endswith("_VARIABLE")}
    assert known <= named
    password = yaml.safe_load((DEPLOY / "storage.postgres.yaml").read_text(encoding="utf-8"))
    assert password["storage"]["postgres"]["postgres_db"]["password"]["env"] in named


def test_the_page_names_every_sensor_and_schedule_and_its_files():
    repository = defs.get_repository_def()
    for one in [*repository.sensor_defs, *repository.schedule_defs]:
        if not one.name.startswith("default_"):
            assert f"| `{one.name}` |" in PAGE, one.name
    for name in re.findall(r"deploy/([a-z.]+)", PAGE):
        assert any(name in path.as_posix() for path in DEPLOY.rglob("*")), name


def test_the_configuration_of_the_retention_is_one_that_the_job_takes():
    import dagster as dg

    (block,) = re.findall(r"^```yaml\n(ops: .*?)^```", PAGE, re.M | re.S)
    job = defs.resolve_job_def("forget_old_runs")
    assert dg.validate_run_config(job, yaml.safe_load(block))
