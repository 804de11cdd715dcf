"""Texts that the command and the shell share: advice, progress, parameters."""
