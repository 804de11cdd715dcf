"""Reconciles a cluster: reads its desired and observed state, decides, writes and reports."""
