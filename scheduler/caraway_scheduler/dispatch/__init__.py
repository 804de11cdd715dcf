"""Adapters of the Dispatch protocol: in process now; the cluster's joins them."""
