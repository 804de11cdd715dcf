"""Clusters that are up, and images that cannot be pulled."""

from typing import Any

from caraway_kube.api.kinds import Object
from tests.operator.harness import Harness


async def up(at: Harness, replicas: int = 2) -> None:
    at.create(executor={"replicas": replicas}, image={"tag": "1"})
    await at.settle()


def images(at: Harness, part: str) -> list[str]:
    return [
        at.api.get("Pod", name)["spec"]["containers"][0]["image"].rpartition(":")[2]
        for name in at.api.names("Pod")
        if f"shop-{part}" in name
    ]


def bad_image(pod: Object) -> Object | None:
    if not pod["spec"]["containers"][0]["image"].endswith(":bad"):
        return None
    waiting: dict[str, Any] = {"reason": "ImagePullBackOff", "message": "no such image"}
    return {"waiting": waiting}
