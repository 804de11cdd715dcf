"""Converts the objects of kopf's events."""

from collections.abc import Mapping
from typing import Any

from caraway_kube.api.kinds import Object, ResourceKind


# Any: kopf's types are no more precise.
def plain_object(body: Mapping[str, Any], kind: ResourceKind) -> Object:
    """Return the object in the form that the client returns, without its managed fields."""
    metadata = {
        field: value for field, value in dict(body["metadata"]).items() if field != "managedFields"
    }
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
