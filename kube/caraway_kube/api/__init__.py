"""Access to the Kubernetes API: credentials, requests, watches, kinds and typed errors.

Knows nothing about Caraway clusters. No other package sends requests to the API.
"""
