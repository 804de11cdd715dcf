"""Runs Ray nodes as child processes, and provides what a process needs to join them.

This package never imports Ray. Ray runs as a separate program, which calls `start_hook`.
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
