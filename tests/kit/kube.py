"""A Kubernetes API in this process: kmock, and those rules of the API that the operator relies on.

Beyond kmock: uid, resourceVersion and generation; server-side apply with what managers own; labels'
selectors; watches from a version; status apart from spec; preconditions; fields that are fixed; one
controller an object; removal of what an owner leaves. Nothing checks schemas or rights.
"""

import asyncio
import copy
import datetime as dt
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp.web
import kmock

from caraway_operator.kube.kinds import KINDS, Kind, Object, Ref

Refuse = Callable[[str, Ref], tuple[int, str] | None]
_FIXED = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
_LIST_KEYS = ("name", "mountPath", "containerPort", "uid", "type")
# Maps that are applied as one value, as the API's schema says of them (x-kubernetes-map-type).
_WHOLE = ("selector", "matchLabels", "nodeSelector", "podSelector", "labelSelector")
# kopf looks for these when it starts.
_OF_KOPF = (
    Kind("v1", "Namespace", "namespaces"),
    Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
)
_BY_PLURAL = {kind.plural: kind for kind in KINDS.values()}


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Emulator(kmock.KubernetesEmulator):
    """Holds objects; `there` is all of them. Tests may read and change it through the methods."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.there: dict[Ref, Object] = {}
        self.log: list[str] = []
        """Every write, as `VERB Kind/name`."""
        self.used: set[tuple[str, str, str]] = set()
        """Every right that was made use of: group, resource, verb."""
        self.refuse: Refuse = lambda _verb, _ref: None
        self.changed: Callable[[], None] = lambda: None
        self._owned: dict[tuple[Ref, str], Object] = {}
        self._events: list[tuple[int, str, Object]] = []
        self._news = asyncio.Condition()
        self.versions = itertools.count(1001)
        self.version = 1000
        self._closed = asyncio.Event()
        self._expired = 0
        for kind in (*KINDS.values(), *_OF_KOPF):
            if not kind.is_optional:
                self.serve(kind)

    def serve(self, kind: Kind) -> None:
        """Let discovery name a kind."""
        group, _, version = kind.api_version.rpartition("/")
        self.resources[kmock.resource(group, version, kind.plural)] = kmock.ResourceInfo(
            kind=kind.name,
            singular=kind.name.lower(),
            namespaced=kind not in _OF_KOPF,
            verbs={"get", "list", "watch", "create", "update", "patch", "delete"},
            subresources={"status"},
        )

    async def close(self) -> None:
        """End the watches, so that the server can stop."""
        self._closed.set()
        async with self._news:
            self._news.notify_all()

    # What tests do by hand

    def get(self, kind: str, name: str, namespace: str = "web") -> Object:  # type: ignore[override]
        return self.there[Ref(kind, namespace, name)]

    def names(self, kind: str) -> list[str]:
        return sorted(which.name for which in self.there if which.kind == kind)

    def put(self, object_: Object) -> Object:  # type: ignore[override]
        """Make or change an object, as somebody else would."""
        kind, metadata = object_["kind"], object_["metadata"]
        which = Ref(kind, metadata.setdefault("namespace", "web"), metadata["name"])
        known = self.there.get(which)
        return self._store(which, copy.deepcopy(object_), known)

    def edit(self, kind: str, name: str, **changes: Any) -> Object:
        """Merge changes into an object, status included."""
        known = self.get(kind, name)
        return self._store(Ref(kind, "web", name), _merge(known, changes), known)

    def remove(self, kind: str, name: str) -> None:
        self._delete(Ref(kind, "web", name))

    def expire(self) -> None:
        """Tell every watch that what it has seen is too old."""
        self._expired = self.version = next(self.versions)
        self._wake()

    # Requests

    async def _handle(self, request: Any) -> aiohttp.web.StreamResponse:
        plural = request.resource.plural if request.resource is not None else None
        kind = _BY_PLURAL.get(plural or "")
        if kind is None or f"{request.resource.group}/{request.resource.version}".strip("/") != (
            kind.api_version
        ):
            found: aiohttp.web.StreamResponse = await super()._handle(request)
            return found
        self._use(request, kind)
        try:
            if request.params.get("watch") == "true":
                return await self._watch(request, kind)
            answer, status = await self._answer(request, kind)
        except ApiError as error:
            body = {"kind": "Status", "code": error.status, "message": str(error)}
            return aiohttp.web.json_response(body, status=error.status)
        return aiohttp.web.json_response(answer, status=status)

    def _use(self, request: Any, kind: Kind) -> None:
        resource = "/".join(part for part in (kind.plural, request.subresource) if part)
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(request.method.value)
        if verb is None:
            verb = "get" if request.name else "list"
        if request.params.get("watch") == "true":
            verb = "watch"
        self.used.add((kind.group, resource, verb))
        which = Ref(kind.name, request.namespace or "", request.name or "")
        if verb == "patch" and "fieldManager" in request.params and which not in self.there:
            # Whoever applies what is not there makes it.
            self.used.add((kind.group, resource, "create"))

    async def _answer(self, request: Any, kind: Kind) -> tuple[Object, int]:
        which = Ref(kind.name, request.namespace or "", request.name or "")
        body = json.loads(request.body) if request.body else {}
        verb = str(request.method.value)
        if verb == "POST":
            which = Ref(kind.name, which.namespace, body["metadata"]["name"])
        if refused := self.refuse(verb, which):
            raise ApiError(*refused)
        if verb != "GET":
            suffix = f"/{request.subresource}" if request.subresource else ""
            self.log.append(f"{verb} {which.kind}/{which.name}{suffix}")
        match verb:
            case "GET" if request.name:
                return self._known(which), 200
            case "GET":
                return self._list(request, kind), 200
            case "POST":
                return self._create(which, body), 201
            case "PATCH":
                return self._patch(request, which, body)
            case "DELETE":
                return self._checked_delete(which, body), 200
        raise ApiError(405, f"{verb} is not served")

    def _list(self, request: Any, kind: Kind) -> Object:
        items = [
            {key: value for key, value in object_.items() if key not in ("apiVersion", "kind")}
            for which, object_ in self.there.items()
            if which.kind == kind.name and self._matches(request, object_)
        ]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _create(self, which: Ref, body: Object) -> Object:
        if which in self.there:
            raise ApiError(409, f"{which} already exists")
        body["metadata"].setdefault("namespace", which.namespace)
        return self._store(which, body, None)

    def _patch(self, request: Any, which: Ref, body: Object) -> tuple[Object, int]:
        known = self.there.get(which)
        if "apply-patch" in request.headers.get("Content-Type", ""):
            return self._apply(which, body, known, request.params["fieldManager"])
        if known is None:
            raise ApiError(404, f"{which} not found")
        version = (body.get("metadata") or {}).pop("resourceVersion", None)
        if version is not None and version != known["metadata"]["resourceVersion"]:
            raise ApiError(409, f"{which} has been modified")
        if request.subresource == "status":
            body = {"status": body.get("status")}
        elif which.kind != "Lease":
            body.pop("status", None)
        return self._store(which, _merge(known, body), known), 200

    def _apply(
        self, which: Ref, body: Object, known: Object | None, manager: str
    ) -> tuple[Object, int]:
        before = self._owned.get((which, manager), {})
        body["metadata"].setdefault("namespace", which.namespace)
        base = _without(known or {}, before, body)
        made = _applied(base, body)
        owners = made["metadata"].get("ownerReferences") or ()
        if sum(bool(owner.get("controller")) for owner in owners) > 1:
            raise ApiError(422, "Only one reference can have Controller set to true")
        if known is not None and which.kind == "StatefulSet":
            for name in _FIXED:
                if made["spec"].get(name) != known["spec"].get(name):
                    raise ApiError(422, f"updates to statefulset spec: {name} is forbidden")
        self._owned[which, manager] = body
        return self._store(which, made, known), 200 if known else 201

    def _checked_delete(self, which: Ref, body: Object) -> Object:
        known = self._known(which)
        uid = (body.get("preconditions") or {}).get("uid")
        if uid is not None and uid != known["metadata"]["uid"]:
            raise ApiError(409, f"the uid of {which} is another one")
        self._delete(which)
        return known

    # What is held

    def _known(self, which: Ref) -> Object:
        if which not in self.there:
            raise ApiError(404, f"{which} not found")
        return self.there[which]

    def _store(self, which: Ref, made: Object, known: Object | None) -> Object:
        metadata = made["metadata"]
        old = (known or {}).get("metadata") or {}
        metadata["uid"] = old.get("uid") or metadata.get("uid") or str(uuid.uuid4())
        stamp = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
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
        self.changed()
        return made

    def _delete(self, which: Ref) -> None:
        gone = self.there.pop(which)
        for owned in [key for key in self._owned if key[0] == which]:
            del self._owned[owned]
        self._tell("DELETED", copy.deepcopy(gone))
        for other, object_ in list(self.there.items()):
            owners = object_["metadata"].get("ownerReferences") or ()
            if other in self.there and any(
                owner["uid"] == gone["metadata"]["uid"] for owner in owners
            ):
                self._delete(other)
        self.changed()

    def _tell(self, type_: str, object_: Object) -> None:
        self.version = next(self.versions)
        object_["metadata"]["resourceVersion"] = str(self.version)
        self._events.append((self.version, type_, copy.deepcopy(object_)))
        self._wake()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._news:
                self._news.notify_all()

        self._waking = asyncio.get_running_loop().create_task(wake())

    async def _watch(self, request: Any, kind: Kind) -> aiohttp.web.StreamResponse:
        response = aiohttp.web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request._raw_request)
        at = int(request.params.get("resourceVersion") or self.version)
        position = 0
        while not self._closed.is_set():
            async with self._news:
                while (
                    position >= len(self._events)
                    and not self._closed.is_set()
                    and at >= self._expired
                ):
                    await self._news.wait()
            if at < self._expired:
                error = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
                await response.write(json.dumps(error).encode() + b"\n")
                break
            fresh, position = self._events[position:], len(self._events)
            for version, type_, object_ in fresh:
                if (
                    version > at
                    and object_["kind"] == kind.name
                    and (self._matches(request, object_))
                ):
                    line = json.dumps({"type": type_, "object": object_}) + "\n"
                    await response.write(line.encode())
        await response.write_eof()
        return response

    def _matches(self, request: Any, object_: Object) -> bool:
        metadata = object_["metadata"]
        if request.namespace and metadata.get("namespace") != request.namespace:
            return False
        labels = metadata.get("labels") or {}
        wanted = [each for each in request.params.get("labelSelector", "").split(",") if each]
        return all(labels.get(each.split("=")[0]) == each.split("=")[1] for each in wanted)


@asynccontextmanager
async def emulated() -> AsyncIterator[Emulator]:
    """Serve an empty API; its address is `url`."""
    emulator = Emulator()
    async with emulator, kmock.Server(emulator):
        try:
            yield emulator
        finally:
            await emulator.close()


# Any: values of JSON, here and below.
def _merge(base: Any, over: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return copy.deepcopy(over)
    merged = dict(copy.deepcopy(base))
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value) if key in merged else _bare(value)
    return merged


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _bare(held) for key, held in value.items() if held is not None}
    return copy.deepcopy(value)


def _applied(base: Any, over: Any) -> Any:
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        found = dict(copy.deepcopy(base))
        return found | {
            key: copy.deepcopy(value) if key in _WHOLE else _applied(found.get(key), value)
            for key, value in over.items()
        }
    if isinstance(base, list) and isinstance(over, list) and (key := _list_key(base + over)):
        held = {each[key]: each for each in base}
        held |= {each[key]: _applied(held.get(each[key]), each) for each in over}
        return list(held.values())
    return copy.deepcopy(over)


def _without(base: Any, before: Any, after: Any) -> Any:
    """Take out what a manager said before and does not say any more."""
    if isinstance(base, Mapping) and isinstance(before, Mapping) and isinstance(after, Mapping):
        return {
            key: _without(value, before[key], after[key]) if key in before and key in after
            else value
            for key, value in base.items()
            if key not in before or key in after
        }  # fmt: skip
    if isinstance(base, list) and isinstance(before, list) and isinstance(after, list):
        key = _list_key([*base, *before, *after])
        if key:
            gone = {each[key] for each in before} - {each[key] for each in after}
            return [each for each in base if each[key] not in gone]
    return base


def _list_key(elements: list[Any]) -> str | None:
    for key in _LIST_KEYS:
        if all(isinstance(each, Mapping) and key in each for each in elements):
            return key
    return None
