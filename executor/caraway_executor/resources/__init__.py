"""Measures and limits what processes use: memory, threads and processor time."""
