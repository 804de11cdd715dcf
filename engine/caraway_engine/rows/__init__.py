"""Rows in memory: partitions merged with the log of their changes, key indexes and row formats."""
