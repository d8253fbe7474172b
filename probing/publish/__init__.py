"""What goes to the Hub: `push` publishes the dataset and the metric, `submit` sends results.

`client` is how both talk to the Hub.
"""
