"""The masking of code: which sub-tokens are masked, and what a masked language model restores."""
