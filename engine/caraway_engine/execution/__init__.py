"""Runs plans: contexts, threads, spill directories and streams of batches."""
