"""Decides which writes are due, and computes the status. Pure: no I/O and no clock."""
