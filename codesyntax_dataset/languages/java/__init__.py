"""The labels of Java methods: `labels` from `tokens`, `parse` and `tree`."""
