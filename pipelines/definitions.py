"""The Dagster code location: everything that lies in `pipelines.defs`."""

import warnings

import dagster as dg

import pipelines.defs
from pipelines.resources import WarehouseResource

warnings.filterwarnings("ignore", category=dg.BetaWarning)

# One process: a second one would wait for the lock of the working file, and starting it takes seconds.
defs = dg.Definitions.merge(
    dg.load_definitions_from_package_module(pipelines.defs),
    dg.Definitions(resources={"warehouse": WarehouseResource()}, executor=dg.in_process_executor),
)
