"""An emulated Kubernetes API in this process: kmock, plus the rules that the operator needs.

Beyond kmock: uid, resourceVersion and generation; updates with optimistic locking; dry runs; label
selectors; watches from a version; separate status; preconditions; finalizers; cascading deletion;
the defaults and rules in `kube_rules`. Schemas are not checked. An apply creates or merges; it does
not remove fields that its manager applied before.
"""

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp.web
import kmock

from caraway_kube.api.kinds import KINDS, NAMESPACE, NODE, Object, ObjectRef, ResourceKind
from tests.kit import kube_rules
from tests.kit.kube_objects import Objects, merge
from tests.kit.kube_rules import ApiError

_OF_SERVER = ("creationTimestamp", "deletionTimestamp", "uid", "generation")
Refuse = Callable[[str, ObjectRef], tuple[int, str] | None]
# kopf looks these up at startup.
_OF_KOPF = (
    ResourceKind(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"
    ),
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BY_PLURAL = {kind.plural: kind for kind in KINDS.values()}


class Emulator(Objects, kmock.KubernetesEmulator):
    """The emulated API; `there` has all objects. Tests read and change it through the methods."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.begin()
        self.home = "web"
        """The namespace that tests mean if they name none."""
        self.is_away = False
        """True if it breaks every connection, as an API server that is down."""
        self.log: list[str] = []
        """Every write, as `VERB Kind/name`."""
        self.used: set[tuple[str, str, str]] = set()
        """Every permission that was used: group, resource, verb."""
        self.refuse: Refuse = lambda _verb, _ref: None
        self._closed = asyncio.Event()
        self._expired = 0
        for kind in (*KINDS.values(), *_OF_KOPF):
            if not kind.is_optional:
                self.serve(kind)

    def serve(self, kind: ResourceKind) -> None:
        """Add a kind to discovery."""
        group, _, version = kind.api_version.rpartition("/")
        self.resources[kmock.resource(group, version, kind.plural)] = kmock.ResourceInfo(
            kind=kind.name,
            singular=kind.name.lower(),
            namespaced=kind not in (*_OF_KOPF, NAMESPACE, NODE),
            verbs={"get", "list", "watch", "create", "update", "patch", "delete"},
            subresources={"status"},
        )

    async def close(self) -> None:
        """End the watches, so that the server can stop."""
        self._closed.set()
        async with self.news:
            self.news.notify_all()

    # Actions of tests

    def get(self, kind: str, name: str, namespace: str = "") -> Object:  # type: ignore[override]
        return self.there[ObjectRef(kind, namespace or self.home, name)]

    def names(self, kind: str) -> list[str]:
        return sorted(which.name for which in self.there if which.kind == kind)

    def put(self, object_: Object) -> Object:  # type: ignore[override]
        """Create or change an object like another client; the API's rules apply."""
        kind, metadata = object_["kind"], object_["metadata"]
        which = ObjectRef(kind, metadata.setdefault("namespace", self.home), metadata["name"])
        known = self.there.get(which)
        made = kube_rules.admitted(copy.deepcopy(object_), known)
        stored = self.store(which, made, known)
        self.finish(which)
        return stored

    def edit(self, kind: str, name: str, **changes: Any) -> Object:
        """Merge changes into an object, status included."""
        known = self.get(kind, name)
        made = kube_rules.admitted(merge(known, changes), known)
        return self.store(ObjectRef(kind, self.home, name), made, known)

    def remove(self, kind: str, name: str, *, orphans: bool = False) -> None:
        self.discard(ObjectRef(kind, self.home, name), orphans=orphans)

    def expire(self) -> None:
        """Expire every watch, so that clients must list again."""
        self._expired = self.version = next(self.versions)
        self.wake()

    def go_away(self) -> None:
        """Break every connection, and every new one until `is_away` is taken back."""
        self.is_away = True
        self.wake()

    # Requests

    async def _handle(self, request: Any) -> aiohttp.web.StreamResponse:
        if self.is_away:
            return _broken(request)
        request = _of_namespace(request)
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

    def _use(self, request: Any, kind: ResourceKind) -> None:
        resource = "/".join(part for part in (kind.plural, request.subresource) if part)
        verb = _VERBS.get(request.method.value)
        if verb is None:
            verb = "get" if request.name else "list"
        if request.params.get("watch") == "true":
            verb = "watch"
        self.used.add((kind.group, resource, verb))

    async def _answer(self, request: Any, kind: ResourceKind) -> tuple[Object, int]:
        which = ObjectRef(kind.name, request.namespace or "", request.name or "")
        body = json.loads(request.body) if request.body else {}
        verb = str(request.method.value)
        if verb == "POST":
            named = body["metadata"].get("name") or f"{body['metadata']['generateName']}x7k2p"
            which = ObjectRef(kind.name, which.namespace, named)
        if refused := self.refuse(verb, which):
            raise ApiError(*refused)
        if request.params.get("dryRun") == "All":
            return self._dry_run(which, body), 201
        if verb != "GET":
            suffix = f"/{request.subresource}" if request.subresource else ""
            self.log.append(f"{verb} {which.kind}/{which.name}{suffix}")
        match verb:
            case "GET" if request.name:
                return self.known(which), 200
            case "GET":
                return self._list(request, kind), 200
            case "POST":
                return self._create(which, body), 201
            case "PUT":
                return self._update(which, body), 200
            case "PATCH":
                return self._patch(request, which, body), 200
            case "DELETE":
                return self._checked_delete(which, body), 200
        raise ApiError(405, f"{verb} is not served")

    def _list(self, request: Any, kind: ResourceKind) -> Object:
        items = [
            {key: value for key, value in object_.items() if key not in ("apiVersion", "kind")}
            for which, object_ in self.there.items()
            if which.kind == kind.name and self._matches(request, object_)
        ]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _create(self, which: ObjectRef, body: Object) -> Object:
        if which in self.there:
            raise ApiError(409, f"{which} already exists")
        body["metadata"].setdefault("namespace", which.namespace)
        if which.kind != "Lease":
            body.pop("status", None)
        return self.store(which, kube_rules.admitted(body, None), None)

    def _dry_run(self, which: ObjectRef, body: Object) -> Object:
        if which in self.there:
            raise ApiError(409, f"{which} already exists")
        return kube_rules.admitted(copy.deepcopy(body), None)

    def _update(self, which: ObjectRef, body: Object) -> Object:
        known = self.known(which)
        metadata, there = body["metadata"], known["metadata"]
        if metadata.get("resourceVersion") not in (None, there["resourceVersion"]):
            raise ApiError(409, f"{which} has been modified")
        if metadata.get("uid") not in (None, there["uid"]):
            raise ApiError(409, f"{which} has another uid")
        kept = {key: there[key] for key in _OF_SERVER if key in there}
        made = {**body, "metadata": {**metadata, **kept}}
        made.pop("status", None)
        if "status" in known:
            made["status"] = known["status"]
        stored = self.store(which, kube_rules.admitted(made, known), known)
        self.finish(which)
        return stored

    def _patch(self, request: Any, which: ObjectRef, body: Object) -> Object:
        known = self.there.get(which)
        # Only server-side apply has this parameter.
        if known is None and "force" in request.params:
            kind = KINDS[which.kind]
            # The API server asks for both rights.
            self.used.add((kind.group, kind.plural, "create"))
            return self._create(which, body)
        if known is None:
            raise ApiError(404, f"{which} not found")
        version = (body.get("metadata") or {}).pop("resourceVersion", None)
        if version is not None and version != known["metadata"]["resourceVersion"]:
            raise ApiError(409, f"{which} has been modified")
        if request.subresource == "status":
            body = {"status": body.get("status")}
        elif which.kind != "Lease":
            body.pop("status", None)
        return self.store(which, kube_rules.admitted(merge(known, body), known), known)

    def _checked_delete(self, which: ObjectRef, body: Object) -> Object:
        known = self.known(which)
        uid = (body.get("preconditions") or {}).get("uid")
        if uid is not None and uid != known["metadata"]["uid"]:
            raise ApiError(409, f"the uid of {which} is another one")
        self.discard(which, orphans=body.get("propagationPolicy") == "Orphan")
        return known

    async def _watch(self, request: Any, kind: ResourceKind) -> aiohttp.web.StreamResponse:
        response = aiohttp.web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request._raw_request)
        at = int(request.params.get("resourceVersion") or self.version)
        position = 0
        while not self._closed.is_set():
            async with self.news:
                while (
                    position >= len(self.events)
                    and not self._closed.is_set()
                    and at >= self._expired
                    and not self.is_away
                ):
                    await self.news.wait()
            if self.is_away:
                return _broken(request)
            if at < self._expired:
                error = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
                await response.write(json.dumps(error).encode() + b"\n")
                break
            fresh, position = self.events[position:], len(self.events)
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
        desired = [each for each in request.params.get("labelSelector", "").split(",") if each]
        return all(labels.get(each.split("=")[0]) == each.split("=")[1] for each in desired)


@asynccontextmanager
async def emulated() -> AsyncIterator[Emulator]:
    """Serve an empty API; its address is `url`."""
    emulator = Emulator()
    async with emulator, kmock.Server(emulator):
        try:
            yield emulator
        finally:
            await emulator.close()


def _broken(request: Any) -> aiohttp.web.StreamResponse:
    """Break the connection of a request, which then has no answer."""
    request._raw_request.transport.abort()
    return aiohttp.web.Response(status=503)


def _of_namespace(request: Any) -> Any:
    """Return a request for a namespace itself, which kmock takes for one of something within it."""
    found = re.fullmatch(r"/api/v1/namespaces/([^/]+)/?", request.url.path)
    if found is None:
        return request
    return SimpleNamespace(
        url=request.url, method=request.method, params=request.params, body=request.body,
        resource=kmock.resource("", "v1", "namespaces"), namespace=None, name=found[1],
        subresource=None,
    )  # fmt: skip
