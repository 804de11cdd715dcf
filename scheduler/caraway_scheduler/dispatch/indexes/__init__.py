"""Answers searches by indexes of executors, and has executors build them."""
