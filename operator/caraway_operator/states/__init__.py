"""The state of a cluster as values: its pods, its progress, its desired and observed state."""
