"""A fleet of migrations with a known answer.

One kernel version drifts earlier, one component changes nothing, and two components always change together. Fleets may
also have libraries that change nothing, or an innocent component that mostly changes with the guilty kernel.
`python -m benchmarks.fleet` counts how often the shipped models say so.
"""

import argparse
import time
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.project import Project, load_project
from warehouse.schema import apply_macros, apply_schema, macro_files, schema_files
from warehouse.settings import project_folder

MODELS = (
    "int_survival_arm",
    "int_factor_effect",
    "int_contrast",
    "int_contrast_member",
    "mart_drift_survival",
    "mart_component_contrast",
)
GUILTY = "flash 2"


@dataclass(frozen=True)
class Fleet:
    """What a fleet is like.

    Attributes:
        migrations: How many there are, each with a baseline of its own.
        typical_onset: Median onset, in steps, of runs on an innocent kernel.
        guilty_onset: Median onset on the guilty kernel; equal to the former for a fleet with nothing to find.
        shape: Shape of the Weibull distribution of onsets.
        libraries: How many libraries of three versions there are that change nothing.
        entangled: Share of the runs whose collectives go by the kernel, guilty or not, instead of by chance.
    """

    migrations: int = 40
    typical_onset: float = 85.0
    guilty_onset: float = 25.0
    shape: float = 1.5
    libraries: int = 0
    entangled: float = 0.0


FLEETS = {
    "one guilty kernel": Fleet(),
    "the same, among four libraries": Fleet(libraries=4),
    "the same, entangled": Fleet(entangled=0.8),
    "nothing to find": Fleet(guilty_onset=85.0),
    "nothing to find, among four libraries": Fleet(guilty_onset=85.0, libraries=4),
}


def survival_rows(fleet: Fleet, seed: int) -> tuple[list[dict], list[tuple[int, str, str, str]]]:
    """Return rows of int_pair_survival, and run, kind, name and version of every component.

    Three accelerators, four kernels, two collectives that change nothing, and a driver that always changes with the
    compute stack. Runs are followed for 60 to 160 steps, a tenth of them crash before.
    """
    rng = np.random.default_rng(seed)
    rows, components = [], []
    for i in range(fleet.migrations):
        kernel, driver = (i // 3) % 4, int(rng.integers(2))
        typical = fleet.guilty_onset if kernel == 2 else fleet.typical_onset
        onset = int(np.ceil(rng.weibull(fleet.shape) * typical / np.log(2) ** (1 / fleet.shape)))
        crashed = bool(rng.random() < 0.1)
        end = int(rng.integers(20, 100)) if crashed else int(rng.integers(60, 160))
        came = onset <= end
        rows.append(
            {
                "pair_id": i + 1,
                "migration": f"m{i}",
                "pair_kind": "migration",
                "baseline_run_id": 1000 + i,
                "candidate_run_id": 2000 + i,
                "recipe": "recipe",
                "metric_group": "all",
                "onset_kind": "drift",
                "duration": min(onset, end),
                "end_kind": "onset" if came else ("crash" if crashed else "censored"),
                "is_event": came,
                "is_competing": crashed and not came,
            }
        )
        rings = int(rng.integers(2))
        if fleet.entangled and rng.random() < fleet.entangled:
            rings = int(kernel == 2)
        components += [
            (2000 + i, "hardware", "npu", str(i % 3)),
            (2000 + i, "attention_kernel", "flash", str(kernel)),
            (2000 + i, "collectives", "rings", str(rings)),
            (2000 + i, "driver", "driver", str(driver)),
            (2000 + i, "compute_stack", "stack", str(driver)),
            *((2000 + i, "library", f"library{n}", str(rng.integers(3))) for n in range(fleet.libraries)),
        ]
    return rows, components


def judge(project: Project, rows: list[dict], components: list[tuple[int, str, str, str]]) -> duckdb.DuckDBPyConnection:
    """Put a fleet into a star in memory and build the models of survival."""
    con = duckdb.connect()
    apply_schema(con)
    apply_macros(con)
    ids = {key: i + 1 for i, key in enumerate(sorted({c[1:] for c in components}))}
    for (kind, name, version), i in ids.items():
        con.execute("insert into dim_component values (?, ?, ?, ?)", [i, kind, name, version])
    bridge = pa.table({"run_id": [c[0] for c in components], "component_id": [ids[c[1:]] for c in components]})
    con.register("bridge_rows", bridge)
    con.execute("insert into bridge_run_component select * from bridge_rows")
    con.register("survival_rows", pa.Table.from_pylist(rows))
    con.execute("create table int_pair_survival as select * from survival_rows")
    for name in MODELS:
        con.execute(f"create table {name} as\n{project.model(name).sql}")
    return con


def findings(con: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
    """Return the finding on each component version."""
    rows = con.execute("select component_kind, arm, finding from mart_component_contrast").fetchall()
    return {(kind, arm): finding for kind, arm, finding in rows}


def main() -> None:
    """Count right and false findings over many fleets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    project = load_project(project_folder("models"), schema_files(), macro_files())
    for title, fleet in FLEETS.items():
        named = false = confounded = censored = 0
        started = time.perf_counter()
        for seed in range(arguments.fleets):
            rows, components = survival_rows(fleet, arguments.seed * 100_000 + seed)
            con = judge(project, rows, components)
            found = findings(con)
            con.close()
            guilty = fleet.guilty_onset < fleet.typical_onset
            earlier = {arm for (_, arm), finding in found.items() if finding == "earlier"}
            named += GUILTY in earlier
            false += bool(earlier - ({GUILTY} if guilty else set()))
            confounded += all(v == "confounded" for (k, _), v in found.items() if k in ("driver", "compute_stack"))
            censored += sum(not r["is_event"] for r in rows) / len(rows)
        n = arguments.fleets
        print(
            f"{title}: guilty kernel named {100 * named / n:.1f}%, any false finding {100 * false / n:.1f}%, "
            f"confounded pair called so {100 * confounded / n:.1f}%, without onset {100 * censored / n:.0f}%, "
            f"{(time.perf_counter() - started) / n:.2f} s a fleet",
            flush=True,
        )


if __name__ == "__main__":
    main()
