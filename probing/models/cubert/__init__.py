"""CuBERT (Kanade et al., ICML 2020): its tokenizer for Python and Java, and the conversion of its
checkpoints."""

LANGUAGES = ("python", "java")
"""The languages that there are models for."""
