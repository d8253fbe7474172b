"""Where models come from, and how they are asked."""
