"""Refreshes: when they are due, their state machine, and the task that runs them."""
