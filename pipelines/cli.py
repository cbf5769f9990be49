"""The command line: `firstdrift ...`.

Dagster, pandas and Great Expectations take seconds to import; only the commands that run assets do, inside
the function.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipelines import export, look
from pipelines.declaring import Declared, add_folder, add_run, manifest_in
from pipelines.manifest import ManifestError, RunEntry
from pipelines.render import FORMATS, to_json, write_result
from pipelines.terminal import (
    AsJson,
    Home,
    UserError,
    drop_output,
    err,
    failure_sentence,
    out,
    ready_streams,
    styled,
)
from warehouse.connection import NothingPublishedError, WarehouseLockedError, open_reader, seal
from warehouse.contract import COMPONENT_KINDS, ROLES
from warehouse.lake import Component
from warehouse.settings import HOME_VARIABLE, Settings, expanded, project_folder, settings_for
from warehouse.wording import counted

_KINDS = ", ".join(COMPONENT_KINDS)
SHOW_FORMATS = ("text", "markdown", "json")

if TYPE_CHECKING:
    from pipelines.execute import RunSummary

app = typer.Typer(
    name="firstdrift",
    help="Says which metric of a migrated training run drifted first, and at which step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"firstdrift {importlib.metadata.version('firstdrift')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Say which metric of a migrated training run drifted first, and at which step."""


@app.command()
def init(home: Home = None, as_json: AsJson = False) -> None:
    """Make the home folder, with the landing folder for logs."""
    settings = settings_for(home)
    settings.landing.mkdir(parents=True, exist_ok=True)
    if as_json:
        print(to_json({"home": settings.home, "landing": settings.landing}))
        return
    out.print(f"Put your logs into {settings.landing}, or name them with `firstdrift add`, then `firstdrift run`.")


@app.command()
def add(
    migration: Annotated[str, typer.Argument(help="Name of the migration, or a folder that holds a migration.yaml.")],
    run: Annotated[str, typer.Argument(help="Name of the run.")] = "",
    log: Annotated[str, typer.Argument(help="Path or glob of its log.")] = "",
    role: Annotated[str, typer.Option(help=f"One of {', '.join(ROLES)}.")] = "candidate",
    baseline: Annotated[str, typer.Option(help="For a candidate: the run it is judged against.")] = "",
    of: Annotated[str, typer.Option(help="For a replicate: the run whose stack it repeats.")] = "",
    component: Annotated[
        list[str] | None,
        typer.Option(help=f"kind=name@version, like hardware=H100; repeatable. Kinds: {_KINDS}."),
    ] = None,
    recipe: Annotated[
        list[str] | None, typer.Option(help="key=value of the recipe, for example model=qwen3; repeatable.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Names of the columns of a table without header: step,loss.")] = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Add a run to a migration, or a folder that holds a migration.yaml."""
    settings = settings_for(home)
    if not run:
        _add_folder(settings, Path(migration), as_json=as_json)
        return
    if not log:
        raise UserError(f"Name the log of {run}: firstdrift add {migration} {run} PATH.")
    pattern = expanded(Path(log))
    has_log = pattern.exists() or any(Path(pattern.anchor or ".").glob(str(pattern).removeprefix(pattern.anchor)))
    if not has_log:
        raise UserError(f"{log}: there is no such file or folder; give the path or glob of the log of {run}.")
    components = tuple(_component(text) for text in component or [])
    entry = RunEntry(
        name=run,
        log=str(pattern.absolute()),
        role=role,
        baseline=baseline,
        of=of,
        components=components,
        columns=tuple(c.strip() for c in columns.split(",") if c.strip()),
    )
    pairs = dict(_key_value(text, "recipe") for text in recipe or [])
    done = add_run(settings.landing, migration, entry, pairs)
    if as_json:
        print(to_json(asdict(done)))
        return
    out.print(f"{done.path} now names {counted(len(done.runs), 'run')}: {', '.join(done.runs)}.")
    _print_missing(done)


def _print_missing(done: Declared) -> None:
    runs = [name for name in done.missing if name != "baseline"]
    if "baseline" in done.missing:
        out.print("A baseline is still to be added (--role baseline) before `firstdrift run` takes it in.")
    if runs:
        out.print(f"Still to be added, since other runs name them: {', '.join(runs)}.")


def _add_folder(settings: Settings, folder: Path, *, as_json: bool = False) -> None:
    done = add_folder(settings.landing, folder)
    if as_json:
        print(to_json(asdict(done)))
    else:
        out.print(f"{done.migration}: {counted(len(done.runs), 'run')}, read from {manifest_in(folder)}.")


def _key_value(text: str, what: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key or not value:
        raise UserError(f"--{what} {text}: write key=value.")
    return key.strip(), value.strip()


def _component(text: str) -> Component:
    kind, value = _key_value(text, "component")
    if kind not in COMPONENT_KINDS:
        raise UserError(f"--component {text}: the kind {kind} is not one of {_KINDS}.")
    name, _, version = value.partition("@")
    return Component(kind, name, version)


@app.command()
def run(home: Home = None, as_json: AsJson = False) -> None:
    """Take in what lies in landing, build, check and publish everything."""
    settings = settings_for(home)
    raise typer.Exit(_run(settings, as_json=as_json))


def _run(settings: Settings, *, as_json: bool) -> int:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting Dagster", total=None)
        from pipelines.execute import run_everything, step_count

        progress.update(task, total=step_count())

        def report(step: str) -> None:
            progress.update(task, advance=1, description=step)

        summary = run_everything(settings, report)
    if as_json:
        print(to_json(asdict(summary)))
    else:
        _print_summary(summary)
    return 0 if summary.is_success else 1


def _print_summary(summary: "RunSummary") -> None:
    for note in summary.notes:
        out.print(note)
    for message in summary.messages:
        err.print(message, style="red")
    if summary.migrations:
        if summary.runs_read or summary.points_added:
            added, lines = counted(summary.points_added, "point"), counted(summary.lines_in_quarantine, "line")
            out.print(
                f"{counted(summary.runs_read, 'log')} read, {summary.runs_unchanged} unchanged; "
                f"{added} added; {lines} in quarantine."
            )
        else:
            out.print(f"Nothing new: {counted(summary.runs_unchanged, 'run')} unchanged, no points added.")
    for name, count in summary.failed_checks.items():
        out.print(f"check {name}: {counted(count, 'finding')}", style="yellow")
    if summary.published:
        word = "Published" if summary.is_new else "Already published"
        out.print(f"{word}: {summary.published}")


@app.command()
def show(
    migration: Annotated[str, typer.Argument(help="Name of a migration; all of them without it.")] = "",
    form: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(SHOW_FORMATS)}.")] = "text",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Print verdicts, what drifted first, parity and anomalies; as Markdown the table for a pull request."""
    from pipelines.pull_request import pull_request_text
    from pipelines.show import migration_views, print_views

    form = "json" if as_json else form
    if form not in SHOW_FORMATS:
        raise UserError(f"--format {form}: write one of {', '.join(SHOW_FORMATS)}.")
    with open_reader(settings_for(home).published) as con:
        if form == "markdown":
            print(pull_request_text(con, migration), end="")
            return
        views = migration_views(con, migration)
    if form == "json":
        print(to_json([asdict(view) for view in views]))
    else:
        print_views(views, out)


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="SQL, or the name of a file in sql/queries.")] = "",
    form: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}.")] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    param: Annotated[list[str] | None, typer.Option(help="name=value of a query's parameter; repeatable.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the questions of sql/queries.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Ask the published file in SQL, read-only."""
    from duckdb import PermissionException

    from pipelines.questions import list_questions, run_question

    form = "json" if as_json else form
    if form not in FORMATS:
        raise UserError(f"--format {form}: write one of {', '.join(FORMATS)}.")
    if list_all:
        for name, title in list_questions():
            out.print(styled((name, "bold"), f"  {title}"))
        return
    if not question:
        raise UserError("Give SQL or the name of a question; `firstdrift query --list` lists them.")
    parameters = dict(_key_value(text, "param") for text in param or [])
    with open_reader(settings_for(home).published) as con:
        seal(con)
        try:
            table = run_question(con, question, parameters)
        except PermissionException as error:
            raise UserError(
                "A query reads what is published and no other file; write its rows with --output."
            ) from error
    write_result(table, form, output, out)


for command in (look.explain, look.pair, look.metrics, look.inspect, export.export, export.superset):
    app.command()(command)


@app.command()
def report(
    folder: Annotated[Path | None, typer.Argument(help="Where to; <home>/reports without it.")] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write the pages: one for each migration, and an index."""
    from warehouse.report import write_reports

    settings = settings_for(home)
    pages = write_reports(settings.published, folder or settings.reports)
    if as_json:
        print(to_json({"pages": pages}))
    else:
        out.print(f"{counted(len(pages), 'page')}: {pages[0]}", soft_wrap=True)


@app.command()
def dictionary(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file: .md, .html or .json; print without it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the data dictionary: every table and column, what it holds and what it is made from."""
    from warehouse.dictionary import FORMATS as DICTIONARY_FORMATS
    from warehouse.dictionary import dictionary_text

    form = "json" if as_json else output.suffix.removeprefix(".") if output else "md"
    if form not in DICTIONARY_FORMATS:
        raise UserError(f"{output}: the name must end in one of .{', .'.join(DICTIONARY_FORMATS)}.")
    text = dictionary_text(form)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text, end="" if text.endswith("\n") else "\n")


@app.command()
def dev(
    port: Annotated[int, typer.Option(help="Port of the page.")] = 3000,
    home: Home = None,
) -> None:
    """Open the Dagster page on this machine, with sensor and schedule."""
    from pipelines.dagster_storage import prepare_storage

    settings = settings_for(home)
    settings.landing.mkdir(parents=True, exist_ok=True)
    prepare_storage(settings.dagster_home)
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(settings.dagster_home),
        HOME_VARIABLE: str(settings.home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    command = [sys.executable, "-m", "dagster", "dev", "-m", "pipelines.definitions", "-p", str(port)]
    raise typer.Exit(subprocess.call(command, env=environment))


@app.command()
def demo(home: Home = None) -> None:
    """Take in the example runs and show what drifted first."""
    settings = settings_for(home)
    _add_folder(settings, project_folder("examples"))
    code = _run(settings, as_json=False)
    if code:
        raise typer.Exit(code)
    show(migration="", form="text", home=home, as_json=False)
    width = min(shutil.get_terminal_size().columns, 100)
    out.print("─" * width, style="dim")
    index = settings.reports / "index.html"
    if index.exists():
        out.print(f"Read on: {index}", soft_wrap=True)
    out.print("Ask on: firstdrift query --list · firstdrift show --json · firstdrift dev")


def main() -> None:
    """Run the command line; a mistake of the user ends with one sentence and exit code 1."""
    from duckdb import Error as DuckDBError
    from pyarrow.lib import ArrowException

    from pipelines.ingest.base import LogError

    try:
        ready_streams()
        try:
            app()
        finally:
            out.file.flush()
    except BrokenPipeError:  # what read the output has enough of it
        drop_output()
        sys.exit(1)
    except OSError as error:
        drop_output()
        _end(failure_sentence(error))
    except (
        UserError,
        ManifestError,
        LogError,
        NothingPublishedError,
        WarehouseLockedError,
        ValueError,
        ArrowException,
    ) as error:
        _end(str(error))
    except DuckDBError as error:
        _end(" ".join(str(error).split("\n\n")[0].split("\n")))


def _end(sentence: str) -> NoReturn:
    err.print(sentence, style="red")
    sys.exit(1)


if __name__ == "__main__":
    main()
