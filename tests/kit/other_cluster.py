"""A hook of `ray start` for a node that knows the id of another cluster than that of its head."""

from typing import Any

from caraway_core.ray_nodes import start_hook

CLUSTER = "0f" * 28


def prepare(parameters: Any, is_head: bool) -> None:
    """Do what the hook of nodes does, and set the id of the cluster."""
    parameters.cluster_id = CLUSTER
    start_hook.prepare(parameters, is_head)
