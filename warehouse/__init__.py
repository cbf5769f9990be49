"""The engine of firstdrift: DuckDB, the SQL files and publishing.

Nothing here knows Dagster or the `pipelines` package.
"""
