"""Texts that the command and the shell share: advice, values of parameters, and texts of others."""
