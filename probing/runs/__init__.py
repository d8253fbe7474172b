"""What every run needs: data, cache, files."""
