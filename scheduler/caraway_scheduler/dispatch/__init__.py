"""Adapters of the Dispatch protocol: in-process execution and execution on a cluster."""
