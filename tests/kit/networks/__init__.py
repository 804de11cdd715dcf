"""Hosts in network namespaces, between which packets can be delayed and lost."""
