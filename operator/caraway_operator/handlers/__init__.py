"""Handlers that kopf calls when a custom resource changes. They update the cache and the queue.

They are event handlers, so kopf writes nothing: neither finalizers nor annotations.
"""

import kopf

from caraway_operator.handlers import clusters, limits
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import ResourceCache


def register_handlers(
    registry: kopf.OperatorRegistry, resources: ResourceCache, controller: Controller
) -> None:
    """Register all handlers with kopf."""
    clusters.register_handler(registry, resources, controller)
    limits.register_handler(registry, resources, controller)
