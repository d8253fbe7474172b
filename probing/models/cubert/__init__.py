"""CuBERT (Kanade et al., ICML 2020): its tokenizer for Python and Java, and the conversion of its
checkpoints."""

LANGUAGES = ("python", "java")
"""The languages that there are models for."""

DROPPABLE = ("comments", "whitespace")
"""The tokens that a tokenizer may leave out."""
