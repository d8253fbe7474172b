"""Publishing on the Hub: `push` uploads the dataset and the metric, `submit` sends results, `board`
reads entries.

`client` is the Hub client that they share.
"""
