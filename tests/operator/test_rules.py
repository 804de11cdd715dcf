from caraway_operator.kube.kinds import LIMITS, OWNED, POD_MONITOR, SERVICE_MONITOR
from caraway_operator.rules import OWN_RULES, RULES, rendered
from tests.operator.looking import bench
from tests.operator.test_operating import running


def allowed() -> set[tuple[str, str, str]]:
    return {
        (rule.group, resource, verb)
        for rule in (*RULES, *OWN_RULES)
        for resource in rule.resources
        for verb in rule.verbs
    }


async def used_rights() -> set[tuple[str, str, str]]:
    """Return the rights that a whole operator and a changing cluster make use of."""
    async with running() as at:
        at.create()
        await at.until("Ready")
        used = set(at.api.used)
    async with bench() as by_hand:
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


async def test_every_request_is_allowed_and_no_right_is_without_use() -> None:
    used = await used_rights()
    # Any object of ours may be read after a conflict, or written, made again and removed; the
    # watches of monitors begin where an API has these kinds.
    ours = {
        (kind.group, kind.plural, verb)
        for kind in OWNED
        for verb in ("create", "delete", "get", "update", "watch")
    }
    seldom = {
        # Broken pods that a StatefulSet waits for are removed.
        ("", "pods", "delete"),
        # The API asks for it where owners block their deletion.
        ("caraway.dev", "carawayclusters/finalizers", "update"),
    }

    assert used - allowed() == set()
    assert allowed() - used - ours - seldom - own_lease() == set()


def own_lease() -> set[tuple[str, str, str]]:
    """Return the rights of the Lease, which another test makes use of."""
    return {("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "patch")}


async def test_secrets_are_never_listed_nor_removed() -> None:
    verbs = {verb for _, resource, verb in allowed() if resource == "secrets"}

    assert verbs == {"create", "get", "update"}


def test_rules_are_rendered_as_roles_have_them() -> None:
    assert rendered(OWN_RULES) == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["create", "get", "patch"],
        }
    ]
