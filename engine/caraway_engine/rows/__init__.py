"""Rows in memory: partitions with the log of their changes, keys, and the forms rows take."""
