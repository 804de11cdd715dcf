"""The Kubernetes API client, resource models and names, shared by operator and management.

Knows nothing about what a component does with the objects.
"""
