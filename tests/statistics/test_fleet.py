"""Which component drifts first, on fleets with a known answer."""

import pytest

from benchmarks.fleet import GUILTY, Fleet, findings, judge, survival_rows
from tests.statistics.star import project
from warehouse.settings import project_folder

MODELS = project()
QUESTION = "which_component_drifts_first.sql"


def test_one_query_names_the_guilty_version_the_innocent_and_the_confounded():
    rows, components = survival_rows(Fleet(guilty_onset=15.0), 3)
    con = judge(MODELS, rows, components)
    sql = (project_folder("sql") / "queries" / QUESTION).read_text(encoding="utf-8")
    answer = con.execute(sql, {"kind": "drift"}).fetchall()
    first = answer[0]
    assert first[:3] == ("attention_kernel", GUILTY, "earlier")
    assert 1.0 < first[6] < first[5] < first[7]
    found = {(kind, arm): finding for kind, arm, finding, *_ in answer}
    assert found["collectives", "rings 0"] == found["collectives", "rings 1"] == "no_difference"
    confounded = [row for row in answer if row[0] in ("driver", "compute_stack")]
    assert len(confounded) == 4
    assert all(row[2] == "confounded" for row in confounded)
    assert {row[3] for row in confounded} == {"driver", "compute_stack"}
    con.close()


def test_fewer_than_five_onsets_are_counted_and_not_tested():
    rows, components = survival_rows(Fleet(migrations=12), 4)
    con = judge(MODELS, rows, components)
    for finding, p_value, events, other in con.execute(
        "select finding, p_value, events, other_events from mart_component_contrast"
    ).fetchall():
        if min(events, other) < 5:
            assert finding in ("too_few_onsets", "confounded")
            assert p_value is None
    con.close()


@pytest.mark.slow
def test_a_fleet_in_which_nothing_differs_seldom_yields_a_finding():
    false = 0
    for seed in range(12):
        rows, components = survival_rows(Fleet(guilty_onset=85.0), 500 + seed)
        con = judge(MODELS, rows, components)
        false += "earlier" in findings(con).values()
        con.close()
    assert false <= 3
