"""Intervals and tests, of whatever a system gets right in clusters such as functions."""
