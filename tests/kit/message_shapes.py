"""The shapes of the messages between schedulers and executors: classes, and their fields in order.

`python -m tests.kit.message_shapes` prints those of the checkout on PYTHONPATH.
"""

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from caraway_core.tables import TableSpec, TableSplit

_ROOTS = (
    "caraway_core.protocols.fleet:Description",
    "caraway_core.protocols.fleet:OwnFile",
    "caraway_core.protocols.fleet:Pinned",
    "caraway_core.protocols.fleet:TableCatalog",
    "caraway_core.protocols.fleet:Task",
    "caraway_core.protocols.fleet:TaskReport",
    "caraway_core.protocols.hosting:AnswerParts",
    "caraway_core.protocols.hosting:CopyOrder",
    "caraway_core.protocols.hosting:CopyStatus",
    "caraway_core.protocols.offers:Offer",
    "caraway_core.protocols.offers:OfferOutcome",
    "caraway_core.protocols.wire:CarriedAnswer",
    "caraway_core.protocols.wire:InputShape",
    "caraway_core.protocols.wire:PackedPage",
    "caraway_core.statements:Statement",
    "caraway_core.changes:LogEntry",
    "caraway_core.errors:CarawayError",
)
_HOMES = ("caraway_core", "caraway_ai", "caraway_plugins")
_HOSTED = ("caraway_ai.hosting", "caraway_plugins.embeddings.hosted")
"""The modules with recipes of models, `HostedSpec`, which are sent with orders of copies."""
_SEARCHED = (_HOMES[0], *_HOSTED)
"""Subclasses elsewhere are known or not, as other modules were imported before."""
# Only objects of subclasses are sent, and those do not name their bases.
_BASES = frozenset({TableSpec, TableSplit})


def shapes() -> Mapping[str, str]:
    """Return the fields of each class, in order; those without a default end in `!`."""
    known = _import_all()
    found: dict[str, str] = {}
    waiting = [_resolved(each) for each in _ROOTS]
    while waiting:
        cls = waiting.pop()
        name = f"{cls.__module__}:{cls.__qualname__}"
        if name in found or not cls.__module__.startswith(_HOMES):
            continue
        if cls not in _BASES:
            found[name] = _fields(cls)
        subclasses: list[type] = cls.__subclasses__()
        waiting += [each for each in subclasses if each.__module__.startswith(_SEARCHED)]
        if is_dataclass(cls):
            hints = get_type_hints(cls, {**known, **vars(sys.modules[cls.__module__])})
            waiting += [part for each in fields(cls) for part in _classes(hints[each.name])]
    return dict(sorted(found.items()))


def _import_all() -> dict[str, Any]:
    """Import all modules, so that subclasses are known; return what hints may name."""
    package = importlib.import_module(_HOMES[0])
    found = pkgutil.walk_packages(package.__path__, _HOMES[0] + ".")
    names: dict[str, Any] = {}
    for name in (*(each.name for each in found), *_HOSTED):
        names |= vars(importlib.import_module(name))
    return names


def _fields(cls: type) -> str:
    if not is_dataclass(cls):
        return ""
    return " ".join(
        each.name + "!" * (each.default is MISSING and each.default_factory is MISSING)
        for each in fields(cls)
    )


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for each in get_args(hint):
        yield from _classes(each)


def _resolved(name: str) -> type:
    module, _, attribute = name.partition(":")
    cls: type = getattr(importlib.import_module(module), attribute)
    return cls


if __name__ == "__main__":
    json.dump(shapes(), sys.stdout, indent=1)
    print()
