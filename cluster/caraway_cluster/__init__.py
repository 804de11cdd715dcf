"""The head of a cluster, and a keeper that runs a whole cluster on one machine.

Processes and files only: no queries, no plans, no Ray API.
"""
