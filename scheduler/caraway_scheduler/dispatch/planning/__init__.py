"""Asks an engine how statements run, over the logs of their catalogs."""
