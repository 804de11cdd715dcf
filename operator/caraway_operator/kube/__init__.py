"""Writes to Kubernetes: the cache of live objects, write plans, merges, events and the Lease.

Sends requests with `caraway_kube.api`.
"""
