"""Secrets and ConfigMaps that a cluster refers to, and the certificates of its schedulers."""
