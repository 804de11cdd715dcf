"""Runs tasks on executors: where they run, what is rerun, and how their rows are merged."""
