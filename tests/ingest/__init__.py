"""Tests of the log readers."""
