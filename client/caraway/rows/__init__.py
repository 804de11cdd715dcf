"""Rows of answers: results, streams of batches, and their forms as text and files."""
