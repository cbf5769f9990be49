"""The commands that look at verdicts, logs and the catalogue."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipelines.render import to_json
from pipelines.terminal import AsJson, Home, UserError, out
from warehouse.connection import open_reader
from warehouse.settings import project_folder, settings_for
from warehouse.wording import counted


def explain(
    pair: Annotated[str, typer.Argument(help="The pair: candidate, migration/candidate or baseline..candidate.")],
    metric: Annotated[str, typer.Argument(help="Name of a metric; the pair as a whole without it.")] = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Print where each number of a verdict comes from, with the query that gives it."""
    from pipelines.explain import explain as gather
    from pipelines.explain import print_evidence

    with open_reader(settings_for(home).published) as con:
        evidence = gather(con, pair, metric)
    if as_json:
        print(to_json([asdict(part) for part in evidence]))
    else:
        print_evidence(evidence, out)


def pair(
    migration: Annotated[str, typer.Argument(help="Name of the migration; proposals without it.")] = "",
    baseline: Annotated[str, typer.Argument(help="Name of the baseline run.")] = "",
    candidate: Annotated[str, typer.Argument(help="Name of the run judged against it.")] = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Propose pairs of runs on one recipe, or declare one."""
    from pipelines.declaring import declare_pair
    from pipelines.pairing import explain_silence, print_proposals, propose_pairs

    settings = settings_for(home)
    if not migration:
        proposals = propose_pairs(settings)
        if as_json:
            print(to_json([asdict(proposal) for proposal in proposals]))
        else:
            print_proposals(proposals, explain_silence(settings), out)
        return
    if not candidate:
        raise UserError(f"Name both runs: firstdrift pair {migration} BASELINE CANDIDATE.")
    done = declare_pair(settings.landing, migration, baseline, candidate)
    if as_json:
        print(to_json(asdict(done)))
        return
    out.print(f"{done.path} now says that {candidate} is judged against {baseline}. `firstdrift run` judges it.")
    others = len(done.runs) - 2
    if others:
        alone = f", {len(done.unpaired)} of them in no pair" if done.unpaired else ""
        out.print(f"It names {counted(others, 'other run')} too, which stay as before{alone}.")


def metrics(
    name: Annotated[str, typer.Argument(help="Name of a metric, or words to search for; all without it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print what the catalogue says of a metric, or search it."""
    from pipelines.metric_view import find_metrics, metric_facts, print_metrics
    from warehouse.catalog import load_catalog

    catalog = load_catalog(project_folder("catalog"))
    found = find_metrics(catalog, name)
    if as_json:
        print(to_json([metric_facts(catalog, metric) for metric in found]))
    else:
        print_metrics(catalog, found, out)


def inspect(
    path: Annotated[Path, typer.Argument(help="A log, a folder of runs, or a folder with a migration.yaml.")],
    as_json: AsJson = False,
) -> None:
    """Print what logs hold: format, steps, metrics, what is not finite, what can't be read. Stores nothing."""
    from pipelines.inspection import folder_notes, inspect_path, print_inspection
    from warehouse.catalog import load_catalog

    views = inspect_path(path, load_catalog(project_folder("catalog")))
    if as_json:
        print(to_json([view.as_dict() for view in views]))
    else:
        print_inspection(views, out)
        for note in folder_notes(path, views):
            out.print(note, style="dim")
    if any(view.error for view in views):
        raise typer.Exit(1)
