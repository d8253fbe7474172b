"""Makes the tables and figures of Shen et al. (2022) again, beside the paper's numbers."""
