"""What is wanted of a cluster: its spec, checked, with what it refers to and within its limits."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from caraway_operator import deciding, gating, limits, sources
from caraway_operator.known import Known
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import Object, Ref
from caraway_operator.manifests import Wanted, meta
from caraway_operator.manifests import objects as build
from caraway_operator.remembering import Remembered
from caraway_operator.resources import declared, parsing
from caraway_operator.status import Facts

_SOURCES_S = 45.0
FRESH_S = 15.0
"""After so long they are read again where one is missing, or a ConfigMap of the user."""


@dataclass(frozen=True, slots=True)
class Read:
    """A spec that can be used, or why it cannot."""

    wanted: Wanted | None
    facts: Facts
    has_surge_room: bool = True
    """One executor more than wanted is within the limits."""
    made: tuple[Ref, ...] = ()
    """Secrets that were made on the way."""


class Reader:
    """Reads what clusters want."""

    def __init__(self, kube: Kube, known: Known, clock: Callable[[], float], version: str) -> None:
        self._kube = kube
        self._known = known
        self._clock = clock
        self._version = version
        self.kinds: frozenset[str] = frozenset()
        """Optional kinds that the API has."""

    async def read(self, cluster: Object, kept: Remembered, base: Facts) -> Read:
        """Check the spec, read what it refers to, and apply limits.

        Raises:
            KubeError: what it refers to cannot be read.
        """
        name, namespace = base.name, base.namespace
        parsed = parsing.cluster(name, cluster.get("spec") or {})
        if parsed.spec is None:
            return Read(None, _invalid(base, parsed.problems))
        spec = parsed.spec
        is_due = self._is_due(kept, cluster)
        if spec.manifest_from is not None and is_due:
            kept.text = await sources.manifest_text(self._kube, namespace, spec)
        checked = (
            declared.inline(spec)
            if spec.manifest_from is None
            else declared.from_config_map(spec, kept.text)
        )
        if checked.declared is None:
            return Read(None, _invalid(base, checked.problems))
        limit = self._known.limits_of(namespace, spec.organization)
        allowed = limits.clamp(spec, limit, others=self._known.elder(cluster))
        facts = replace(base, clamped=[str(each) for each in allowed.clamped])
        if allowed.refused:
            refused = [str(each) for each in allowed.refused]
            return Read(None, replace(facts, refused=refused, is_taken=False))
        wanted = Wanted(
            name=name,
            namespace=namespace,
            spec=allowed.spec,
            declared=checked.declared,
            uid=cluster["metadata"]["uid"],
            generation=base.generation,
            version=self._version,
            limits=limit,
            kinds=self.kinds,
        )
        made: tuple[Ref, ...] = ()
        if is_due and not spec.paused:
            now = dt.datetime.fromtimestamp(self._clock(), dt.UTC)
            kept.sources = await sources.gather(self._kube, wanted, now)
            kept.of, kept.read_at, made = _of(cluster), self._clock(), kept.sources.made
        wanted = replace(wanted, secrets=kept.sources.checksums)
        facts = replace(
            facts,
            is_stopped=spec.stopped,
            is_tls=spec.tls.enabled,
            image=_image(wanted),
            version=meta.version(wanted),
        )
        most = limit.replicas if limit else -1
        has_room = most < 0 or most > wanted.executor_count
        return Read(wanted, facts, has_surge_room=has_room, made=made)

    def _is_due(self, kept: Remembered, cluster: Object) -> bool:
        """Tell whether the Secrets and ConfigMaps are to be read again."""
        is_users = bool((cluster.get("spec") or {}).get("manifestFrom") or kept.sources.missing)
        age = self._clock() - kept.read_at
        return kept.of != _of(cluster) or age >= (FRESH_S if is_users else _SOURCES_S)

    def built(self, kept: Remembered, wanted: Wanted) -> list[Object]:
        """Build the objects, unless they are those of last time."""
        of = (
            wanted.generation, wanted.uid, wanted.limits, wanted.kinds, kept.text,
            tuple(sorted(wanted.secrets.items())),
        )  # fmt: skip
        if kept.built[0] != of:
            executor = wanted.spec.executor
            has_executors = executor.replicas > 0 or executor.max_replicas is not None
            made = gating.gated(build(wanted), has_executors)
            kept.built = (of, deciding.stamped(made))
        return kept.built[1]


def _invalid(base: Facts, problems: Sequence[object]) -> Facts:
    # What runs is left as it is, and measured by what it is told to be.
    return replace(base, problems=[str(each) for each in problems], is_taken=False)


def _image(wanted: Wanted) -> str:
    image = wanted.spec.image
    if image.digest:
        return f"{image.repository}@{image.digest}"
    return f"{image.repository}:{image.tag or wanted.version}"


def _of(cluster: Object) -> tuple[int, str]:
    return cluster["metadata"].get("generation", 0), cluster["metadata"]["uid"]
