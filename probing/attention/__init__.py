"""The attention probe: ranks of dependents, and what follows from them."""
