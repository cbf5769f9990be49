"""The rules of the house that no other tool holds."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
HEAVY = {"dagster", "pandas", "great_expectations"}


def modules(folder: str) -> list[Path]:
    return sorted((PROJECT / folder).rglob("*.py"))


def imports_of(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", modules("warehouse"), ids=lambda p: p.name)
def test_the_engine_knows_neither_dagster_nor_pipelines(path):
    names = imports_of(path)
    assert not roots(names) & {"dagster", "pipelines"}
    if path.name != "expectations.py":
        assert not roots(names) & {"great_expectations", "pandas"}
    if path.name == "contract.py":
        assert "duckdb" not in roots(names)


@pytest.mark.parametrize("path", modules("pipelines/ingest"), ids=lambda p: p.name)
def test_readers_know_neither_dagster_nor_duckdb_and_only_the_contract(path):
    names = imports_of(path)
    assert not roots(names) & (HEAVY | {"duckdb"})
    assert {n for n in names if n.startswith("warehouse")} <= {"warehouse.contract"}
    own = {n for n in names if n.startswith("pipelines")}
    assert all(n.startswith("pipelines.ingest") for n in own)


@pytest.mark.parametrize("path", modules("warehouse"), ids=lambda p: p.name)
def test_heavy_libraries_are_imported_late(path):
    assert not roots(imports_of(path, top_level_only=True)) & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["query", "--list"], ["show"]])
def test_light_commands_import_no_heavy_library(arguments, tmp_path):
    code = (
        "import sys\n"
        f"sys.argv = ['firstdrift', *{arguments!r}]\n"
        "from pipelines.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('heavy:', sorted({HEAVY!r} & sys.modules.keys()))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={"PATH": "", "FIRSTDRIFT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "heavy: []" in result.stdout, result.stdout + result.stderr


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [PROJECT / name for name in listed.stdout.decode().split("\0") if name]


def test_lock_files_name_no_package_index():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (PROJECT / name).read_text(encoding="utf-8")
        assert not re.search(r"index-url|find-links|https?://|file:", text), name
        assert re.search(r"^duckdb==|^pytest==", text, re.M), name


def test_no_tracked_file_holds_an_absolute_path_of_a_machine():
    pattern = re.compile(r"(?<![A-Za-z0-9_.])/(?:work|root|home/[a-z]+|Users/[a-z]+)/")
    found = []
    for path in tracked_files():
        if path.suffix in {".py", ".sql", ".md", ".toml", ".yaml", ".csv", ".lock"} and path.exists():
            text = path.read_text(encoding="utf-8")
            found += [f"{path.name}: {m.group()}" for m in pattern.finditer(text) if path != Path(__file__)]
    assert not found
