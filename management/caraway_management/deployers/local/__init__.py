"""Runs projects as processes of this machine, each with a folder in the data directory."""
