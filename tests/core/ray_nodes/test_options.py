"""The command line and the environment of a node of Ray."""

import os
from pathlib import Path

import pytest

from caraway_core.ids import ExecutorId
from caraway_core.ray_nodes import GcsStore, NodeOptions, options
from caraway_core.settings import Address

HEAD = Address("127.201.7.1", 19_000)


def node(folder: Path, *, joins: bool = False, node_ip: str | None = None,
         store: GcsStore | None = None, object_store_bytes: int = 0) -> NodeOptions:  # fmt: skip
    return NodeOptions(HEAD, joins, node_ip, 3, object_store_bytes, folder, folder / "t", store)


def test_a_head_does_without_a_dashboard_and_an_executor_names_the_head(tmp_path: Path) -> None:
    first = options.command(node(tmp_path), tmp_path, 40_001)
    assert {
        "--head", "--port=19000", "--include-dashboard=false", "--runtime-env-agent-port=40001",
        "--node-ip-address=127.201.7.1", "--num-cpus=3",
    } <= set(first)  # fmt: skip
    other = options.command(node(tmp_path, joins=True, node_ip="127.201.7.9"), tmp_path, 40_001)
    assert other[other.index("--address") + 1] == str(HEAD)
    assert "--node-ip-address=127.201.7.9" in other
    assert "--head" not in other
    alone = options.command(node(tmp_path, joins=True), tmp_path, 40_001)
    assert not [each for each in alone if each.startswith("--node-ip-address")]


@pytest.mark.parametrize(("asked", "given"), [(0, 80 << 20), (1, 80 << 20), (1 << 30, 1 << 30)])
def test_an_object_store_is_never_smaller_than_ray_takes(
    tmp_path: Path, asked: int, given: int
) -> None:
    command = options.command(node(tmp_path, object_store_bytes=asked), tmp_path, 1)
    assert f"--object-store-memory={given}" in command


def test_the_redis_of_a_head_is_told_in_the_words_of_ray(tmp_path: Path) -> None:
    store = GcsStore.parse("rediss://me:p%40ss@db.test:6380/0?prefix=mine")
    assert store.environment() == {
        "RAY_REDIS_ADDRESS": "rediss://db.test:6380",
        "RAY_external_storage_namespace": "mine",
        "CARAWAY_REDIS_PASSWORD": "p@ss",
    }
    made = node(tmp_path, store=store)
    command = options.command(made, tmp_path, 40_001)
    assert "--redis-username=me" in command
    assert not [each for each in command if "p@ss" in each]
    assert options.start_environment(made)["CARAWAY_REDIS_PASSWORD"] == "p@ss"
    assert "p@ss" not in repr(made)


def test_every_process_of_a_cluster_shows_the_token(tmp_path: Path) -> None:
    variables = options.environment(tmp_path / "token")
    assert variables["RAY_AUTH_MODE"] == "token"
    assert variables["RAY_AUTH_TOKEN_PATH"] == str(tmp_path / "token")
    assert variables.items() <= options.start_environment(
        NodeOptions(HEAD, False, None, 0, 0, tmp_path, tmp_path / "token")
    ).items()  # fmt: skip


def test_only_a_head_is_watched(tmp_path: Path) -> None:
    watched = {"sign": str((tmp_path / "watched").absolute())}
    environments = [options.start_environment(node(tmp_path, joins=each)) for each in (False, True)]
    assert [watched["sign"] in each.values() for each in environments] == [True, False]


@pytest.mark.parametrize("node_ip", [None, "127.201.7.9"])
def test_a_process_joins_the_node_next_to_it(node_ip: str | None) -> None:
    arguments = options.init_arguments(HEAD, node_ip)
    assert (arguments["address"], arguments["namespace"]) == (str(HEAD), options.NAMESPACE)
    assert arguments.get("_node_ip_address") == node_ip


def test_actors_of_executors_have_their_names() -> None:
    name = options.executor_name(ExecutorId("e-1"))
    assert options.executor_of(name) == ExecutorId("e-1")
    assert options.executor_of("other") is None
    assert os.path.basename(name) == name
