"""Runs statements in stages on all executors, and describes their progress."""
