"""Scripts that run inside the trackers' environments."""
