"""Rerankers: models that judge how well texts answer a query."""
