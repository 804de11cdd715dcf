"""Refreshes of accelerated datasets: schedules, the state machine and its driver."""
