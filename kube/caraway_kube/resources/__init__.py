"""The custom resources `CarawayCluster` and `CarawayLimits`: models, checks, CRDs and reference.

Values and rules only. Sends no requests and builds no objects.
"""
