"""Reads the desired state of a cluster: its spec, checked, clamped to limits, with references."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from caraway_core.concurrency.clocks import SecondsClock
from caraway_kube import naming
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import Object, ObjectRef
from caraway_kube.resources import manifest_checks, parsing
from caraway_operator.manifests import DesiredCluster, meta
from caraway_operator.manifests import objects as build
from caraway_operator.policy import decisions, limits
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.reconciling.reconcile_cache import ReconcileCache
from caraway_operator.references import referenced_objects
from caraway_operator.watching.resource_cache import ResourceCache

_REREAD_S = 45.0
FRESH_S = 10.0
"""Objects of users are read again after this time: a new value should work within 30 s."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The desired cluster, or the facts that say why there is none."""

    cluster: DesiredCluster | None
    facts: ClusterFacts
    has_surge_room: bool = True
    """The limits allow one executor more than desired."""
    created: tuple[ObjectRef, ...] = ()
    """Secrets that were created while reading."""


class DesiredStateReader:
    """Reads the desired state of clusters."""

    def __init__(
        self,
        kube: KubeClient,
        resources: ResourceCache,
        clock: SecondsClock,
        version: str,
    ) -> None:
        self._kube = kube
        self._resources = resources
        self._clock = clock
        self._version = version
        self.kinds: frozenset[str] = frozenset()
        """Optional kinds that the API server serves."""

    async def read_desired(
        self, cluster: Object, cache: ReconcileCache, base: ClusterFacts
    ) -> DesiredState:
        """Check the spec, read the objects that it refers to, and apply the limits.

        Raises:
            KubeError: a referenced object cannot be read.
        """
        name, namespace = base.name, base.namespace
        parsed = parsing.cluster(name, cluster.get("spec") or {})
        if parsed.spec is None:
            return DesiredState(None, _invalid(base, parsed.problems))
        spec = parsed.spec
        is_due = self._is_due(cache, cluster)
        if spec.manifest_from is not None and is_due:
            cache.manifest_text = await referenced_objects.read_manifest(
                self._kube, namespace, spec
            )
        checked = (
            manifest_checks.check_inline(spec)
            if spec.manifest_from is None
            else manifest_checks.check_config_map(spec, cache.manifest_text)
        )
        if checked.manifest is None:
            return DesiredState(None, _invalid(base, checked.problems))
        limit = self._resources.limits_of(namespace, spec.organization)
        allowed = limits.clamp(spec, limit, others=self._resources.older_clusters(cluster))
        clamped = [str(each) for each in allowed.clamped]
        facts = replace(base, spec=replace(base.spec, clamped=clamped))
        if allowed.refused:
            refused = [str(each) for each in allowed.refused]
            rejected = replace(facts.spec, refused=refused, is_accepted=False)
            return DesiredState(None, replace(facts, spec=rejected))
        desired = DesiredCluster(
            name=name,
            namespace=namespace,
            spec=allowed.spec,
            manifest=checked.manifest,
            uid=cluster["metadata"]["uid"],
            generation=base.generation,
            version=self._version,
            limits=limit,
            kinds=self.kinds,
        )
        created: tuple[ObjectRef, ...] = ()
        if is_due and not spec.paused:
            created = await self._read_referenced(cluster, cache, desired)
        if not cache.referenced.missing:
            cache.accepted_for = _revision(cluster)
        elif cache.accepted_for != _revision(cluster):
            # Pods of this spec would not start. Those that run have what they need.
            return DesiredState(None, _invalid(facts, cache.referenced.missing), created=created)
        desired = replace(desired, secrets=cache.referenced.checksums)
        accepted = replace(
            facts.spec,
            is_stopped=spec.stopped,
            has_tls=spec.tls.enabled,
            image=_image(desired),
            version=meta.version(desired),
        )
        most = limit.replicas if limit else -1
        has_room = most < 0 or most > desired.executor_count
        facts = replace(facts, spec=accepted)
        return DesiredState(desired, facts, has_surge_room=has_room, created=created)

    def build_objects(self, cache: ReconcileCache, desired: DesiredCluster) -> list[Object]:
        """Return the desired objects. They are built again only if something has changed."""
        made_from = (
            desired.generation, desired.uid, desired.limits, desired.kinds, cache.manifest_text,
            tuple(sorted(desired.secrets.items())),
        )  # fmt: skip
        if cache.built[0] != made_from:
            cache.built = (made_from, decisions.with_template_hashes(build(desired)))
        return cache.built[1]

    async def _read_referenced(
        self, cluster: Object, cache: ReconcileCache, desired: DesiredCluster
    ) -> tuple[ObjectRef, ...]:
        now = dt.datetime.fromtimestamp(self._clock(), dt.UTC)
        cache.referenced = await referenced_objects.read_referenced(
            self._kube, desired, now, cache.referenced.checksums
        )
        cache.read_for, cache.read_at = _references(cluster), self._clock()
        return cache.referenced.created

    def _is_due(self, cache: ReconcileCache, cluster: Object) -> bool:
        """Return whether to read the Secrets and ConfigMaps again."""
        spec = cluster.get("spec") or {}
        is_users = bool(spec.get("manifestFrom")) or cache.referenced.has_users
        age = self._clock() - cache.read_at
        return cache.read_for != _references(cluster) or age >= (FRESH_S if is_users else _REREAD_S)


def _invalid(base: ClusterFacts, problems: Sequence[object]) -> ClusterFacts:
    # Running workloads stay as they are. Their applied replicas count as desired.
    spec = replace(base.spec, problems=[str(each) for each in problems], is_accepted=False)
    return replace(base, spec=spec)


def _image(desired: DesiredCluster) -> str:
    image = desired.spec.image
    if image.digest:
        return f"{image.repository}@{image.digest}"
    return f"{image.repository}:{image.tag or desired.version}"


def _revision(cluster: Object) -> tuple[int, str]:
    return cluster["metadata"].get("generation", 0), cluster["metadata"]["uid"]


def _references(cluster: Object) -> tuple[int, str, str]:
    """Return what is different as soon as the objects that a spec refers to may be different."""
    annotations = cluster["metadata"].get("annotations") or {}
    return *_revision(cluster), annotations.get(naming.REFERENCES, "")
