"""Running plans: contexts, threads, folders for spilled rows, and streams of batches."""
