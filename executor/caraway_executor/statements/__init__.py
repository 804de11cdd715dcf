"""Runs statements and tasks in one process, over the sessions of its catalogs."""
