"""What a verdict says of the evidence behind it, and what its question advises."""

import numpy as np
import pytest

from tests.statistics.star import Migration, Run, build, open_star, statistics_models
from warehouse.settings import project_folder

LOSS = "train_metrics/worker_0/step_avg_reduced_llm_loss"
ADVICE = (project_folder("sql") / "queries" / "what_would_raise_the_grade.sql").read_text(encoding="utf-8")
# Runs of the baseline's and of the candidate's stack beside the judged ones, and what they are worth.
GRADES = {
    (0, 0): "C",
    (1, 0): "C",
    (0, 1): "C",
    (1, 1): "C",
    (2, 0): "B",
    (0, 2): "B",
    (2, 1): "B",
    (1, 2): "B",
    (3, 0): "B",
    (0, 3): "B",
    (2, 2): "A",
    (1, 3): "A",
}
ONE_STACK = {(0, 0): "C", (1, 0): "C", (2, 0): "B", (3, 0): "A"}


def migration(name: str, baseline_runs: int, candidate_runs: int, candidate_stack: str = "npu") -> Migration:
    rng = np.random.default_rng(baseline_runs + 10 * candidate_runs)
    batches = 2.0 + 0.3 * rng.standard_normal(40)

    def run(name, role, stack, baseline=""):
        values = batches + 0.01 * rng.standard_normal(40)
        return Run(name, role, stack, {LOSS: dict(enumerate(values.tolist(), start=1))}, baseline)

    return Migration(
        name,
        (
            run("gpu", "baseline", "gpu"),
            run("cand", "candidate", candidate_stack, "gpu"),
            *(run(f"gpu_{i}", "replicate", "gpu") for i in range(baseline_runs)),
            *(run(f"npu_{i}", "replicate", "npu") for i in range(candidate_runs)),
        ),
    )


def judged(migrations: list[Migration]):
    con = open_star(migrations)
    build(con, [*statistics_models(), "mart_verdict_reason"])
    return con


def advice_of(con) -> dict[str, dict]:
    return {row["migration"]: row for row in con.sql(ADVICE).to_arrow_table().to_pylist()}


@pytest.mark.parametrize(("stack", "grades"), [("npu", GRADES), ("gpu", ONE_STACK)])
def test_what_is_advised_raises_the_grade(stack, grades):
    names = {f"{b}+{c}": (b, c) for b, c in grades}
    con = judged([migration(name, b, c, stack) for name, (b, c) in names.items()])
    found = advice_of(con)
    assert {name: row["grade"] for name, row in found.items()} == {f"{b}+{c}": g for (b, c), g in grades.items()}
    more = {name: (row["more_baseline_runs"], row["more_candidate_runs"]) for name, row in found.items()}
    assert all((sum(more[name]) > 0) == (row["grade"] != "A") for name, row in found.items())
    raised = judged([migration(name, b + more[name][0], c + more[name][1], stack) for name, (b, c) in names.items()])
    for name, row in advice_of(raised).items():
        assert row["grade"] == {"A": "A", "B": "A", "C": "B"}[found[name]["grade"]], name
    evidence = con.execute(
        """
        select migration, sentence from mart_verdict_reason
        inner join dim_migration using (pair_id, migration)
        where reason_kind = 'evidence' and pair_kind = 'migration'
        """
    ).fetchall()
    assert len(evidence) == len(grades)
    for name, sentence in evidence:
        is_told = "judged runs left out" in sentence
        assert is_told == (found[name]["grade"] != "C"), (name, sentence)
