"""Analyses statements: their size, their shape, and what their typed plan does."""
