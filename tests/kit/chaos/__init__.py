"""A load of writes and reads while processes die and pause, and the model of what it was answered.

No tests live here: those that do the harm are in `tests/e2e`.
"""
