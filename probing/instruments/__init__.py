"""What is asked of a model: a room for each instrument, with its settings, run, ledger, result and
hits."""
