"""The trackers' own writers against our readers; run by `make test-trackers`."""
