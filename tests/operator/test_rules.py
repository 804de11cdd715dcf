from collections import defaultdict

from caraway_kube.api.kinds import LIMITS, OWNED, POD_MONITOR, SERVICE_MONITOR, ObjectRef
from caraway_kube.rbac import rendered
from caraway_operator.kube.lease import LeaderElection
from caraway_operator.rules import OWN_RULES, RULES
from tests.operator.harness import Harness, harness
from tests.operator.operating import running
from tests.operator.reconciling.rollout_images import bad_image


def allowed() -> set[tuple[str, str, str]]:
    return {right for rule in (*RULES, *OWN_RULES) for right in rule.rights}


MONITORS = (SERVICE_MONITOR, POD_MONITOR)


class Contrary:
    """An API server that answers the first changes of an object with a conflict and a refusal.

    The operator then reads the object again, and recreates it.
    """

    def __init__(self) -> None:
        self.answers = defaultdict[ObjectRef, list[tuple[int, str]]](
            lambda: [(422, "a field is immutable"), (409, "it has been modified")]
        )

    def refuse(self, verb: str, which: ObjectRef) -> tuple[int, str] | None:
        is_ours = verb == "PUT" and which.kind in {kind.name for kind in OWNED}
        return self.answers[which].pop() if is_ours and self.answers[which] else None


async def used_rights() -> set[tuple[str, str, str]]:
    """Return the rights that an operator uses while a cluster changes."""
    async with running(optional=MONITORS) as at:
        at.create()
        await at.until("Ready")
        used = set(at.api.used)
    async with harness() as by_hand:
        for kind in MONITORS:
            by_hand.api.serve(kind)
        by_hand.reconciler.kinds = frozenset(kind.name for kind in MONITORS)
        by_hand.api.put({"kind": LIMITS.name, "metadata": {"name": "plan"}, "spec": {}})
        monitors = {"serviceMonitor": True, "podMonitor": True}
        by_hand.api.put({"kind": "Secret", "metadata": {"name": "keys"}, "data": {"one": "b25l"}})
        keys = {"apiKeys": [{"name": "keys", "key": "one"}]}
        by_hand.create(tls={"enabled": True}, monitoring=monitors, auth=keys)
        await by_hand.settle()
        by_hand.clock.now += 330 * 86400
        by_hand.change(executor={"replicas": 2, "cache": {"size": "20Gi"}})
        await by_hand.settle()
        by_hand.api.refuse = Contrary().refuse
        by_hand.change(image={"tag": "2"})
        await by_hand.settle(80)
        await replace_broken_pods(by_hand)
        election = LeaderElection(by_hand.kube, "caraway", "operator", "me", by_hand.clock)
        for _ in range(2):
            assert await election.try_acquire()
        used |= by_hand.api.used
    return used


async def replace_broken_pods(at: Harness) -> None:
    """Roll out an image that does not start, and then one that does."""
    at.controllers.ill = bad_image
    at.change(image={"tag": "bad"})
    for _ in range(20):
        await at.step()
    at.change(image={"tag": "3"})
    await at.settle(80)


async def test_every_request_is_allowed_and_every_right_is_used() -> None:
    used = await used_rights()
    # No request has this right: it allows blockOwnerDeletion in some clusters.
    implied = {("caraway.dev", "carawayclusters/finalizers", "update")}

    assert used - allowed() == set()
    assert allowed() - used == implied


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
