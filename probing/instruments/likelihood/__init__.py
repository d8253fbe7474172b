"""The fifth and sixth instruments: the likelihood of minimal pairs and of the tokens of syntax
nodes."""
