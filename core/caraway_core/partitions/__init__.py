"""Partitions of accelerated datasets: names, rules and bucket hashing.

Schedulers and executors must agree on all of it, across processes and releases. Placement of
partitions on executors belongs to the scheduler, not here.
"""
