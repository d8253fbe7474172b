"""The fourth instrument: the cost of silencing attention heads."""
