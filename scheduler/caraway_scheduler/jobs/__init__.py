"""Asynchronous queries: submitted now, answered later, also by another scheduler.

`model` says what a job is, `states` what may become of it; `records` keeps jobs in the state
store, `replica` follows them there; `queue` says whose job is next, `runner` runs one, and `desk`
is what the API asks.
"""
