"""Translates the engine's errors to errors and messages for users."""
