"""Runs the searches of statements before the statements, and fuses and reranks their rows."""
