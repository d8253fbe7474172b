"""Syntax in attention beyond words and positions: all heads together, in a log-linear choice."""
