"""Accelerated datasets: versions, refreshes, changes, maintenance and pass-through.

Rules are pure functions over values, and drivers receive the objects that do the work. This package
does not depend on HTTP or the engine.
"""
