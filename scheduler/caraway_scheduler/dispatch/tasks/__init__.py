"""Runs tasks on executors: chooses their places, runs lost ones again, and merges their rows."""
