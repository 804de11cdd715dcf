"""Access to the Kubernetes API: requests, watches, write plans, events and the Lease.

Knows nothing about Caraway clusters. No other package of the operator sends requests to the API.
"""
