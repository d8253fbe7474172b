"""Evidence for a score: protocols, baselines, intervals, tests, and the entry that is published."""
