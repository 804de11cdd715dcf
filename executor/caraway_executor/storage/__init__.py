"""Chunks: written where results are made, read once, and kept while they are referenced."""
