"""Accelerated datasets: what they are cut into, who holds what, when and how they are refreshed.

No HTTP here and no engine: rules are values in and values out, their drivers are told who does
the work.
"""
