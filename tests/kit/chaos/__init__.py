"""Runs writes and reads while processes die and pause, and checks them against a model.

The tests that inject the faults are in `tests/e2e`.
"""
