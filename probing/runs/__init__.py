"""What every run needs: data, controls, cache, progress, untrusted input."""
