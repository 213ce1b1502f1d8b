"""From captured graphs to functional ones."""
