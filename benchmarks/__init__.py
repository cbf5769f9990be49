"""Measurements: simulated runs with known answers, and how long things take."""
