"""Pure builders: a `Wanted` in, Kubernetes objects out. One module for each kind of object.

No requests, no clock, no randomness: the same cluster gives the same objects.
"""

from caraway_operator.manifests.all import objects
from caraway_operator.manifests.wanted import Wanted

__all__ = ["Wanted", "objects"]
