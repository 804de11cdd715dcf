"""What users write: `CarawayCluster` and `CarawayLimits` as checked values, and their CRDs.

Values and rules only: no Kubernetes API, no objects that are made of them.
"""
