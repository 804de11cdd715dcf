import pytest

from caraway_management.domain import instances, plans
from caraway_management.domain.refusals import RefusedError


@pytest.mark.parametrize(
    ("is_paused", "is_deployed", "code"),
    [
        (True, True, "project_paused"),
        (True, False, "project_paused"),
        (False, False, "project_not_deployed"),
    ],
)
def test_a_project_without_a_runtime_is_a_conflict(
    is_paused: bool, is_deployed: bool, code: str
) -> None:
    instances.check_running(is_paused=False, is_deployed=True)
    with pytest.raises(RefusedError) as refused:
        instances.check_running(is_paused=is_paused, is_deployed=is_deployed)
    assert (refused.value.status, refused.value.code) == (409, code)


def test_a_plan_limits_the_lines_of_a_log() -> None:
    most = plans.max_tail("free")
    instances.check_tail("free", most)
    with pytest.raises(RefusedError) as refused:
        instances.check_tail("free", most + 1)
    assert (refused.value.status, refused.value.extra) == (403, {"max_tail": most})


def test_unknown_and_ended_instances() -> None:
    instances.check_known("a", {"a"})
    with pytest.raises(RefusedError, match="'b' not found"):
        instances.check_known("b", {"a"})
    assert instances.offline("a").code == "instance_offline"
