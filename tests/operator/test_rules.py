from caraway_operator.kube.kinds import LIMITS, SERVICE_MONITOR
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


async def test_every_request_is_allowed_by_the_rules() -> None:
    async with running() as at:
        at.create()
        await at.until("Ready")
        used = set(at.api.used)
    async with bench() as by_hand:
        by_hand.api.serve(SERVICE_MONITOR)
        by_hand.reconciler.kinds = frozenset({SERVICE_MONITOR.name})
        by_hand.api.put({"kind": LIMITS.name, "metadata": {"name": "plan"}, "spec": {}})
        by_hand.create(tls={"enabled": True}, monitoring={"serviceMonitor": True})
        await by_hand.settle()
        by_hand.change(executor={"replicas": 1}, network={"policies": False})
        await by_hand.settle()
        used |= by_hand.api.used

    assert used - allowed() == set()


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
