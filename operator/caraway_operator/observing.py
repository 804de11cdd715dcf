"""What there is of a cluster, taken from the objects that are watched."""

from dataclasses import replace

from caraway_operator import deciding, naming, pods
from caraway_operator.kube.kinds import POD, SERVICE, VOLUME_CLAIM, Object, Ref
from caraway_operator.kube.objects import Objects
from caraway_operator.naming import SCHEDULER
from caraway_operator.pods import SetView
from caraway_operator.status import Facts


def observed(objects: Objects, facts: Facts) -> Facts:
    """Add the sets, pods, claims and missing Services as they are now."""
    there = objects.of(facts.namespace, facts.name)
    views = [
        pods.view(each)
        for which, each in there.items()
        if which.kind == POD.name and not pods.is_left_behind(each)
    ]
    troubles = pods.claim_troubles(claims(objects, facts))
    sets = _sets(there, facts)
    unreachable = {*facts.unreachable, *(_missing_services(there, facts) if sets else ())}
    return replace(
        facts, sets=sets, pods=views, claims=troubles, unreachable=tuple(sorted(unreachable))
    )


def as_told(facts: Facts) -> Facts:
    """Measure what runs by what it is told to be, while nobody knows what is wanted."""
    return replace(facts, wish={part: there.replicas for part, there in facts.sets.items()})


def claims(objects: Objects, facts: Facts) -> list[Object]:
    """Return the claims of the cluster's pods."""
    there = objects.of(facts.namespace, facts.name)
    return [each for which, each in there.items() if which.kind == VOLUME_CLAIM.name]


def written(objects: Objects, facts: Facts) -> dict[Ref, Object]:
    """Return what the operator writes, as it is now."""
    return {
        which: each
        for which, each in objects.of(facts.namespace, facts.name).items()
        if which.kind not in (POD.name, VOLUME_CLAIM.name)
    }


def _missing_services(there: dict[Ref, Object], facts: Facts) -> list[str]:
    """Return the Services of every cluster that are not there: of users, and of the head."""
    names = (facts.name, naming.of(facts.name, naming.HEAD))
    return [n for n in names if Ref(SERVICE.name, facts.namespace, n) not in there]


def _sets(there: dict[Ref, Object], facts: Facts) -> dict[str, SetView]:
    found = {}
    for component in deciding.COMPONENTS:
        kind = "Deployment" if component == SCHEDULER else "StatefulSet"
        which = Ref(kind, facts.namespace, naming.of(facts.name, component))
        if which in there:
            found[component] = pods.set_view(there[which])
    return found
