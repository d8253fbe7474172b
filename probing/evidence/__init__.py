"""Evidence for a score: protocols, baselines, intervals, tests, and what is submitted to boards."""
