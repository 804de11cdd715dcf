"""Errors of the engine, in words for users: its messages, and the kinds that they stand for."""
