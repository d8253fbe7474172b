"""Mutants of the core that change nothing that anyone can see, each with the reason."""

from __future__ import annotations

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {}
"""Module -> the changed lines before and after, without indentation -> why nothing changes."""
