"""Exact labels: what a grammar says, by a table for each language.

`constructs` names the relations, alike in all languages; `table` is the record that a language
fills in; `parts` is the notation in which it says where the parts of a construct stand; `labels`
turns code into tokens and edges by a table, and `definitions` finds the functions in a source file.
"""
