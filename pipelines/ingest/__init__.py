"""Log readers: a path in, a `RunLog` out.  Knows neither dagster nor duckdb."""
