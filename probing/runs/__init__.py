"""The base of every run: data, controls, cache, progress, untrusted input."""
