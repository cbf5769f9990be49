"""The Dagster code location: everything that lies in `pipelines.defs`."""

import warnings
from datetime import timedelta

import dagster as dg

# Assets and checks are found by a call that Dagster still calls a preview; the versions are locked.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

import pipelines.defs  # noqa: E402
from pipelines.resources import WarehouseResource  # noqa: E402
from warehouse.settings import team_settings  # noqa: E402

# What people look at is to be current; the daily run makes it so where nothing else does.
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=50), warn_window=timedelta(hours=26))
_LOOKED_AT = {"published", "marts"}


def _for_the_team(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Name the owners of an asset, and how old it may become."""
    owned = spec.replace_attributes(owners=team_settings().owners)
    return owned.replace_attributes(freshness_policy=FRESH) if spec.group_name in _LOOKED_AT else owned


# One process: a second one would wait for the lock of the working file, and starting it takes seconds.
defs = dg.Definitions.merge(
    dg.load_definitions_from_package_module(pipelines.defs).map_resolved_asset_specs(func=_for_the_team),
    dg.Definitions(resources={"warehouse": WarehouseResource()}, executor=dg.in_process_executor),
)
