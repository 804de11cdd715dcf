"""Signatures and tickets of a cluster, and URLs that may have passwords."""
