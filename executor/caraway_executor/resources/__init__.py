"""Measures and limits the memory, threads and processor time of processes."""
