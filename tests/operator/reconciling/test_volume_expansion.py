from typing import Any

from caraway_operator.reconciling.volume_expansion import VolumeExpansion, expansions


def stateful_set(size: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "shop-executor"},
        "spec": {"volumeClaimTemplates": templates},
    }


def claim(name: str, size: str, **metadata: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def test_only_claims_that_are_too_small_are_expanded() -> None:
    claims = [
        claim("data-shop-executor-0", "10Gi"),
        claim("data-shop-executor-1", "20480Mi"),
        claim("data-shop-executor-2", "30Gi"),
        claim("data-shop-executor-3", "10Gi", deletionTimestamp="now"),
        claim("data-other-executor-0", "1Gi"),
    ]

    assert expansions([stateful_set("20Gi")], claims) == [
        VolumeExpansion("data-shop-executor-0", "20Gi")
    ]
    assert VolumeExpansion("x", "20Gi").patch == {
        "spec": {"resources": {"requests": {"storage": "20Gi"}}}
    }
