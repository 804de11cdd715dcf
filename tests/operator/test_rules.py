from caraway_operator.kube.kinds import LIMITS, OWNED, POD_MONITOR, SERVICE_MONITOR
from caraway_operator.rules import OWN_RULES, RULES, rendered
from tests.operator.harness import harness
from tests.operator.test_operating import running


def allowed() -> set[tuple[str, str, str]]:
    return {
        (rule.group, resource, verb)
        for rule in (*RULES, *OWN_RULES)
        for resource in rule.resources
        for verb in rule.verbs
    }


async def used_rights() -> set[tuple[str, str, str]]:
    """Return the rights that an operator uses while a cluster changes."""
    async with running() as at:
        at.create()
        await at.until("Ready")
        used = set(at.api.used)
    async with harness() as by_hand:
        kinds = (SERVICE_MONITOR, POD_MONITOR)
        for kind in kinds:
            by_hand.api.serve(kind)
        by_hand.reconciler.kinds = frozenset(kind.name for kind in kinds)
        by_hand.api.put({"kind": LIMITS.name, "metadata": {"name": "plan"}, "spec": {}})
        monitors = {"serviceMonitor": True, "podMonitor": True}
        by_hand.create(tls={"enabled": True}, monitoring=monitors)
        await by_hand.settle()
        by_hand.clock.now += 330 * 86400
        by_hand.change(
            executor={"replicas": 1, "cache": {"size": "20Gi"}},
            network={"policies": False},
            monitoring={"serviceMonitor": False, "podMonitor": False},
        )
        await by_hand.settle()
        used |= by_hand.api.used
    return used


async def test_every_request_is_allowed_and_every_right_is_used() -> None:
    used = await used_rights()
    # Any managed object may be read after a conflict, written, recreated or deleted. Monitors
    # are watched if the API server has these kinds.
    ours = {
        (kind.group, kind.plural, verb)
        for kind in OWNED
        for verb in ("create", "delete", "get", "update", "watch")
    }
    seldom = {
        # Broken pods that block a StatefulSet are deleted.
        ("", "pods", "delete"),
        # Needed for blockOwnerDeletion in some clusters.
        ("caraway.dev", "carawayclusters/finalizers", "update"),
    }

    assert used - allowed() == set()
    assert allowed() - used - ours - seldom - own_lease() == set()


def own_lease() -> set[tuple[str, str, str]]:
    """Return the rights for the Lease, which another test covers."""
    return {("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "patch")}


async def test_secrets_are_neither_listed_nor_deleted() -> None:
    verbs = {verb for _, resource, verb in allowed() if resource == "secrets"}

    assert verbs == {"create", "get", "update"}


def test_rules_have_the_form_of_a_role() -> None:
    assert rendered(OWN_RULES) == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["create", "get", "patch"],
        }
    ]
