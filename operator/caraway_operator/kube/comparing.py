"""Whether an object is as it is wanted, judged by the fields that are wanted and no others."""

from collections.abc import Mapping, Sequence
from typing import Any

from caraway_operator.resources import quantities

# What tells the elements of a list apart, where the API merges lists by it.
_KEYS = ("name", "mountPath", "containerPort", "uid", "ip", "topologyKey", "type")
# Maps that are one value to the API: whoever adds a key changes what the whole of it means.
_WHOLE = frozenset(
    {"labelSelector", "matchLabels", "namespaceSelector", "nodeSelector", "podSelector", "selector"}
)


# Any: values of JSON, here and below.
def covers(wanted: Any, live: Any) -> bool:
    """Tell whether `live` has all that `wanted` says; what else it has is not asked about."""
    if _is_empty(wanted) and _is_empty(live):
        return True
    match wanted, live:
        case Mapping(), Mapping():
            return all(
                covers(value, live.get(key)) and (key not in _WHOLE or covers(live.get(key), value))
                for key, value in wanted.items()
            )
        case list(), list():
            return _covers_list(wanted, live)
    return _is_same(wanted, live)


def without_nulls(value: Any) -> Any:
    """Return the value without keys that hold None, which the API drops as well."""
    match value:
        case Mapping():
            return {key: without_nulls(held) for key, held in value.items() if held is not None}
        case list() | tuple():
            return [without_nulls(held) for held in value]
    return value


def without_empty(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the map without keys that hold nothing."""
    return {key: value for key, value in held.items() if not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    # The API leaves out what is empty, and defaults what is left out.
    return value is None or (isinstance(value, Mapping | list) and not value)


def _is_same(wanted: Any, live: Any) -> bool:
    if wanted == live:
        return True
    # The API writes quantities its own way: 1000m comes back as 1.
    try:
        return quantities.number(wanted) == quantities.number(live)
    except ValueError:
        return False


def _covers_list(wanted: list[Any], live: list[Any]) -> bool:
    key = _key(wanted)
    if key is None:
        return len(wanted) == len(live) and all(map(covers, wanted, live))
    return all(covers(element, _found(live, key, element)) for element in wanted)


def _key(wanted: Sequence[Any]) -> str | None:
    for key in _KEYS if wanted else ():
        if all(isinstance(element, Mapping) and key in element for element in wanted):
            values = [element[key] for element in wanted]
            return key if len(set(map(str, values))) == len(values) else None
    return None


def _found(live: list[Any], key: str, element: Mapping[str, Any]) -> Any:
    for candidate in live:
        if isinstance(candidate, Mapping) and candidate.get(key) == element[key]:
            return candidate
    return None
