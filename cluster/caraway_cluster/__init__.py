"""The head of a cluster, the supervisor of a cluster on one machine, and the chunk store.

Handles processes and files only: no queries, no plans, no Ray API.
"""
