"""Objects as kopf hands them over."""

from collections.abc import Mapping
from typing import Any

from caraway_operator.kube.kinds import Kind, Object


# Any: kopf's own types say no more.
def plain(body: Mapping[str, Any], kind: Kind) -> Object:
    """Return the object as the client would have read it, without what nobody looks at."""
    metadata = {
        field: value for field, value in dict(body["metadata"]).items() if field != "managedFields"
    }
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
