"""The attention probe: ranks of dependents, and scores and errors that follow from them."""
