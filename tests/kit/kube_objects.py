"""The objects of an emulated Kubernetes API, with versions, owners, finalizers and events."""

import asyncio
import copy
import datetime as dt
import itertools
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from caraway_kube.api.kinds import KINDS, Object, ObjectRef
from tests.kit.kube_rules import ApiError


class Objects:
    """Stores objects as the API server does, and keeps what watches see of that."""

    def begin(self) -> None:
        """Begin without objects."""
        self.there: dict[ObjectRef, Object] = {}
        self.owned: dict[str, set[ObjectRef]] = {}
        """The objects that each uid owns, because a search takes seconds for a hundred clusters."""
        self.changed: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = time.time
        self.events: list[tuple[int, str, Object]] = []
        self.news = asyncio.Condition()
        self.versions = itertools.count(1001)
        self.version = 1000

    def known(self, which: ObjectRef) -> Object:
        if which not in self.there:
            raise ApiError(404, f"{which} not found")
        return self.there[which]

    def store(self, which: ObjectRef, made: Object, known: Object | None) -> Object:
        metadata = made["metadata"]
        old = (known or {}).get("metadata") or {}
        metadata["uid"] = old.get("uid") or metadata.get("uid") or str(uuid.uuid4())
        stamp = self._now()
        metadata.setdefault("creationTimestamp", old.get("creationTimestamp", stamp))
        is_same_spec = known is not None and made.get("spec") == known.get("spec")
        metadata["generation"] = old.get("generation", 0) + (not is_same_spec)
        metadata["resourceVersion"] = old.get("resourceVersion", "")
        made.setdefault("apiVersion", KINDS[which.kind].api_version)
        made.setdefault("kind", which.kind)
        if made == known:
            return known
        self._tell("MODIFIED" if known else "ADDED", made)
        self.there[which] = made
        self._index(which, known, made)
        self.changed()
        return made

    def discard(self, which: ObjectRef, *, orphans: bool = False) -> None:
        """Delete an object; one with finalizers is only marked until they are removed."""
        known = self.known(which)
        if known["metadata"].get("finalizers"):
            marked = copy.deepcopy(known)
            marked["metadata"].setdefault("deletionTimestamp", self._now())
            self.store(which, marked, known)
            return
        self._index(which, self.there[which], None)
        gone = copy.deepcopy(self.there.pop(which))
        self._tell("DELETED", gone)
        uid = gone["metadata"]["uid"]
        for other in sorted(self.owned.pop(uid, ())):
            if other not in self.there:
                continue
            object_ = self.there[other]
            left = [each for each in _owners(object_) if each["uid"] != uid]
            if orphans or left:
                changed = copy.deepcopy(object_)
                changed["metadata"]["ownerReferences"] = left
                self.store(other, changed, object_)
            else:
                self.discard(other)
        self.changed()

    def _index(self, which: ObjectRef, known: Object | None, made: Object | None) -> None:
        for owner in _owners(known):
            self.owned.get(owner["uid"], set()).discard(which)
        for owner in _owners(made):
            self.owned.setdefault(owner["uid"], set()).add(which)

    def finish(self, which: ObjectRef) -> None:
        metadata = self.there[which]["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.discard(which)

    def _now(self) -> str:
        now = dt.datetime.fromtimestamp(self.clock(), dt.UTC)
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _tell(self, type_: str, object_: Object) -> None:
        self.version = next(self.versions)
        object_["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, type_, copy.deepcopy(object_)))
        self.wake()

    def wake(self) -> None:
        async def wake() -> None:
            async with self.news:
                self.news.notify_all()

        self._waking = asyncio.get_running_loop().create_task(wake())


def _owners(object_: Object | None) -> list[Object]:
    return (object_ or {"metadata": {}})["metadata"].get("ownerReferences") or []


# Any: values of JSON, here and below.
def merge(base: Any, over: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return copy.deepcopy(over)
    merged = dict(copy.deepcopy(base))
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value) if key in merged else _bare(value)
    return merged


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _bare(held) for key, held in value.items() if held is not None}
    return copy.deepcopy(value)
