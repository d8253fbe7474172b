"""Models: finding, loading, checking and running them."""
