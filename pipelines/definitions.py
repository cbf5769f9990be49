"""The Dagster code location: everything that lies in `pipelines.defs`."""

import warnings

import dagster as dg

# Assets and checks are found by a call that Dagster still calls a preview; the versions are locked.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

import pipelines.defs  # noqa: E402
from pipelines.resources import WarehouseResource  # noqa: E402

# One process: a second one would wait for the lock of the working file, and starting it takes seconds.
defs = dg.Definitions.merge(
    dg.load_definitions_from_package_module(pipelines.defs),
    dg.Definitions(resources={"warehouse": WarehouseResource()}, executor=dg.in_process_executor),
)
