"""What every component that uses Kubernetes shares: the API client, resource models and names.

Knows nothing about what a component does with the objects.
"""
