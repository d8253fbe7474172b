"""What attention tells of syntax beyond words and positions: all heads together, in a log-linear choice."""
