"""The bundle for Apache Superset."""
