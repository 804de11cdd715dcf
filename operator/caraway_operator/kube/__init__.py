"""The Kubernetes API as the operator uses it: requests, watches, what is written and when.

It knows nothing of clusters of Caraway, and nothing else of the operator may speak HTTP to the API.
"""
