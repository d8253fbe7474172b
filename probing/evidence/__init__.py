"""What a score is worth: protocols, baselines, intervals, tests, and the entry that is published."""
