"""Let MLflow write the scenario into a SQLite and a file store: target folder as argument."""

import os
import sys
import time
from pathlib import Path

import scenario

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow


def name(metric):
    """Return the name as verl's adapter makes it: MLflow refuses some characters."""
    return metric.replace("@", "_at_")


for kind in ("sqlite", "files"):
    for run in scenario.RUNS:
        folder = Path(sys.argv[1]).resolve() / kind / run
        folder.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db" if kind == "sqlite" else (folder / "mlruns").as_uri())
        if kind == "sqlite":
            client = mlflow.MlflowClient()
            mlflow.set_experiment(experiment_id=client.create_experiment("scenario", artifact_location=folder.as_uri()))
        else:
            mlflow.set_experiment("scenario")
        run_id = None
        for leg, steps in scenario.legs():
            time.sleep(0.05)  # the file store orders writes by the millisecond
            with mlflow.start_run(run_id=run_id, run_name=run) as session:
                run_id = session.info.run_id
                if leg == 1:
                    mlflow.log_params(scenario.CONFIG)
                for step in steps:
                    values = {name(k): v for k, v in scenario.row(run, leg, step).items()}
                    mlflow.log_metrics(values, step=step)
