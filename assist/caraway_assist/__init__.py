"""Knows models and search: models, embeddings, tools, text-to-SQL, workers, search."""
