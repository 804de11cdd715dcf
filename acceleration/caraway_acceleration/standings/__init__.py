"""The state of accelerated datasets, and their lag behind their sources, as values for users."""
