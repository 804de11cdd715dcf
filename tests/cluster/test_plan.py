"""The processes of a cluster on one machine and their command lines."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from caraway_cluster import plan as plans
from caraway_core.settings import Address, ClusterOptions

ANY = Address("127.0.0.1", 0)
URL = "redis://:secret@127.0.0.1:6379"


def options(executors: int = 2, state: str | None = None, data_dir: str = "/d") -> ClusterOptions:
    return ClusterOptions(
        manifest=Path("m.yaml"),
        executors=executors,
        http=ANY,
        flight=ANY,
        metrics=ANY,
        data_dir=Path(data_dir),
        state=state,
    )


def test_a_plan_is_read_back_from_json() -> None:
    plan = plans.make_plan(options())

    assert plans.ClusterPlan.from_json(plan.to_json()) == plan


def test_without_executors_the_machine_is_still_divided() -> None:
    plan = plans.make_plan(options(executors=0))

    assert plan.cores >= 1 and plan.memory_bytes > 0
    assert list(plans.processes(plan)) == ["head", "scheduler"]


def test_every_process_has_an_address_of_its_own() -> None:
    plan = plans.make_plan(options(executors=plans.MAX_EXECUTORS))
    addresses = [spec.address.partition(":")[0] for spec in plans.processes(plan).values()]

    assert len(set(addresses)) == plans.MAX_EXECUTORS + 2
    assert all(0 < int(part) < 255 for each in addresses for part in each.split(".")[2:])


def test_clusters_in_different_directories_get_different_addresses() -> None:
    first, second = (plans.make_plan(options(data_dir=each)) for each in ("/a", "/b"))

    assert first.head != second.head
    assert first == plans.make_plan(options(data_dir="/a"))


@pytest.mark.parametrize("name", ["head", "scheduler", "executor-1"])
def test_the_url_of_the_state_store_is_not_on_the_command_line(name: str) -> None:
    plan = plans.make_plan(options(state=URL))
    spec = plans.processes(plan)[name]

    assert not any("secret" in word for word in plans.command(plan, spec, Path("/d"), 7))
    has_state = name != "executor-1"
    assert plans.environment(plan, spec) == ({"CARAWAY_STATE": URL} if has_state else {})


def test_the_limits_act_in_the_scheduler() -> None:
    limits = replace(options(), limits_file=Path("limits.json"))
    plan = plans.ClusterPlan.from_json(plans.make_plan(limits).to_json())

    words = {
        spec.role: plans.command(plan, spec, Path("/d"), 7)
        for spec in plans.processes(plan).values()
    }
    # The processes have other working directories.
    flag = ["--limits-file", str(Path("limits.json").absolute())]
    assert [role for role, found in words.items() if found[-10:-8] == flag] == ["scheduler"]
    without = plans.make_plan(options())
    specs = plans.processes(without).values()
    assert not any("--limits-file" in plans.command(without, each, Path("/d"), 7) for each in specs)


def test_processes_write_to_their_own_directories_and_to_the_ready_pipe() -> None:
    plan = plans.make_plan(options())

    for spec in plans.processes(plan).values():
        words = plans.command(plan, spec, Path("/d"), 7)
        flags = dict(pairwise(words))
        assert (flags["--data-dir"], flags["--ready-fd"]) == (f"/d/{spec.name}", "7")
        assert flags["--token-file"] == "/d/token"
