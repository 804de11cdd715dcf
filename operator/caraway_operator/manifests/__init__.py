"""Builds the Kubernetes objects of a `DesiredCluster`, mostly one module for each kind.

Pure: no requests, no clock and no randomness. Equal clusters have equal objects.
"""

from caraway_operator.manifests.cluster import objects
from caraway_operator.manifests.desired import DesiredCluster

__all__ = ["DesiredCluster", "objects"]
