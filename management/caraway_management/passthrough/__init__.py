"""Reaches the runtimes of projects: takes queries to them, and reads their metrics."""
