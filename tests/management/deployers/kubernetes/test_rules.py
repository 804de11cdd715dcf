"""The rights of the management service are those that its requests use."""

import asyncio

from caraway_kube.api.kinds import CLUSTER
from caraway_management.deployers.kubernetes.rules import RULES
from tests.kit import deadlines
from tests.management.deployers.kubernetes.deploying import (
    WANTED,
    deploying,
    pod,
    report,
    unschedulable,
)

RIGHTS = {right for rule in RULES for right in rule.rights}


async def test_every_request_is_allowed_and_every_right_is_used() -> None:
    async with deploying() as (api, deployer):
        await deployer.apply(WANTED)
        await deployer.apply(WANTED)
        report(api, "Creating")
        api.put(pod("runtime-executor-0", unschedulable("1 Insufficient cpu")))
        await deployer.observe(7)
        await deployer.instances(7)
        assert await deployer.logs(7, "runtime-executor-0", 10) is not None
        watching = asyncio.create_task(deployer.run())
        assert await deployer.project_ids() == {7}
        assert await deployer.changed() == {41}
        watch = (CLUSTER.group, CLUSTER.plural, "watch")

        async def is_watching() -> bool:
            return watch in api.used

        await deadlines.eventually(is_watching, "a watch")
        watching.cancel()
        await deployer.remove(7)

        assert api.used == RIGHTS


def test_secrets_are_written_and_never_read() -> None:
    assert {verb for _, resource, verb in RIGHTS if resource == "secrets"} == {"create", "patch"}


def test_no_rule_has_a_wildcard() -> None:
    assert [right for right in RIGHTS if "*" in right] == []
