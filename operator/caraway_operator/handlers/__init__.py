"""What kopf calls when users change something: each handler takes note and has a cluster looked at.

Thin on purpose. They are handlers of events, so kopf writes nothing: no finalizer, no annotation.
"""

import kopf

from caraway_operator.controller import Controller
from caraway_operator.handlers import clusters, limits
from caraway_operator.known import Known


def register(registry: kopf.OperatorRegistry, known: Known, controller: Controller) -> None:
    """Have kopf call the handlers."""
    clusters.register(registry, known, controller)
    limits.register(registry, known, controller)
