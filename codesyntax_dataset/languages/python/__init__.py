"""The labels of Python functions: `labels` from `tokens` and `tree`."""
