"""Benchmarks. Each result is a ratio to a named alternative, measured in the same run."""
