"""What a score is worth: protocols, baselines, intervals, and the entry that is published."""
