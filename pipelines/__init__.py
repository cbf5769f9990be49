"""The log readers, the Dagster code location and the command line of firstdrift."""
