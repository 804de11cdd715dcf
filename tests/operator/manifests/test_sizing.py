import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube.resources.pods import ContainerResources
from caraway_operator.manifests import sizing

MINIMUM_STORE_MIB = 80


def test_omitted_resources_follow_from_the_given_ones() -> None:
    def effective(**said: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        found = sizing.effective("executor", ContainerResources(**said))
        return found.requests, found.limits

    assert effective() == ({"cpu": "1", "memory": "2Gi"}, {"memory": "2Gi"})
    assert effective(limits={"cpu": "4", "memory": "8Gi"}) == (
        {"cpu": "4", "memory": "8Gi"},
        {"cpu": "4", "memory": "8Gi"},
    )
    assert effective(requests={"memory": "4Gi"}) == (
        {"cpu": "1", "memory": "4Gi"},
        {"memory": "4Gi"},
    )
    assert effective(limits={"nvidia.com/gpu": "1"}) == (
        {"cpu": "1", "memory": "2Gi"},
        {"memory": "2Gi", "nvidia.com/gpu": "1"},
    )


@pytest.mark.parametrize("component", ["scheduler", "executor"])
@given(limit_mib=st.integers(768, 4_000_000))
def test_memory_shares_never_exceed_the_limit(component: str, limit_mib: int) -> None:
    shares = sizing.shares(component, ContainerResources(limits={"memory": f"{limit_mib}Mi"}))
    assert MINIMUM_STORE_MIB <= shares.object_store_mib < shares.shm_mib
    assert shares.statements_mib >= 64
    assert shares.shm_mib + 2 * shares.statements_mib + 384 <= limit_mib


def test_cores_of_an_executor() -> None:
    def cores(**said: dict[str, str]) -> int:
        return sizing.cores(sizing.effective("executor", ContainerResources(**said)))

    assert cores() == 1
    assert cores(requests={"cpu": "250m"}) == 1
    assert cores(requests={"cpu": "250m"}, limits={"cpu": "3500m"}) == 4
