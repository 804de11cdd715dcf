"""Implementations of the Fleet protocol: Ray actors, paged answers and the scheduler's files."""
