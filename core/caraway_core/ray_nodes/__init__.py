"""Ray nodes as child processes of ours, and what a process must know to join them.

Ray itself is never imported here: it runs as a program of its own, which calls `start_hook`.
"""

from caraway_core.ray_nodes.node import NodeFailedError, RayNode
from caraway_core.ray_nodes.options import (
    NAMESPACE,
    NodeOptions,
    environment,
    executor_name,
    executor_of,
    init_arguments,
    require,
)
from caraway_core.ray_nodes.output import diverted
from caraway_core.ray_nodes.redis import GcsStore
from caraway_core.ray_nodes.tokens import make_token, read_token

__all__ = [
    "NAMESPACE",
    "GcsStore",
    "NodeFailedError",
    "NodeOptions",
    "RayNode",
    "diverted",
    "environment",
    "executor_name",
    "executor_of",
    "init_arguments",
    "make_token",
    "read_token",
    "require",
]
