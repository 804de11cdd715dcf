import asyncio
import importlib.util
import os
import socket
import stat
import uuid
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import redis

from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import (
    GcsStore,
    NodeFailedError,
    NodeOptions,
    RayNode,
)
from caraway_core.ray_nodes import node as nodes
from caraway_core.settings import Address
from tests.kit import processes, valkey
from tests.kit.deadlines import until
from tests.kit.ray_cluster import close_sessions, marked, start

HEAD = Address("127.201.7.1", 19_000 + os.getpid() % 900)


def head(folder: Path, **changes: object) -> NodeOptions:
    settings: dict[str, object] = {
        "head": HEAD,
        "joins": False,
        "node_ip": HEAD.host,
        "cores": 0,
        "object_store_bytes": 0,
        "folder": folder / "ray",
        "token_file": folder / "token",
    }
    return NodeOptions(**{**settings, **changes})  # type: ignore[arg-type]


def test_token_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "token"
    ray_nodes.make_token(file)
    token = ray_nodes.read_token(file)
    ray_nodes.make_token(file)
    assert ray_nodes.read_token(file) == token
    assert len(token) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_missing_token_is_refused_with_the_flag_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match="--token-file"):
        ray_nodes.read_token(tmp_path / "none")


def test_port_that_is_held_is_free_for_those_alone_that_share_it() -> None:
    with closing(nodes._hold_port()) as held, socket.socket() as agent:
        address = ("127.201.7.3", held.getsockname()[1])
        agent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        agent.bind(address)
        agent.listen()
        socket.create_connection(address, 10).close()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.201.7.4", address[1]))


def test_store_of_another_kind_is_refused_without_its_secrets() -> None:
    with pytest.raises(CarawayError, match="not a Redis") as caught:
        GcsStore.parse("mysql://me:secret@db.test")
    assert "secret" not in caught.value.message


def test_session_moves_where_socket_paths_are_short_enough(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80)
    session = nodes.open_session(deep)
    assert session.is_dir()
    assert deep not in session.parents
    assert stat.S_IMODE(session.stat().st_mode) == 0o700
    # Leftovers of a killed process are removed when the next one starts.
    again = nodes.open_session(deep)
    assert not session.exists()
    nodes.close_session(deep)
    assert not again.exists()


@pytest.mark.full
@pytest.mark.timeout(200)
def test_node_joins_and_leaves_nothing_when_it_stops(tmp_path: Path) -> None:
    ray_nodes.make_token(tmp_path / "token")

    async def run() -> int:
        node = await RayNode.start(head(tmp_path))
        await node.stop()
        return node.pid

    group = asyncio.run(run())
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    assert {each.name for each in (tmp_path / "ray").iterdir()} == {"ray.log", "watched"}


def site(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Path:
    """Return a folder that makes every started Python run the code first."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(f"import os, sys, pathlib\n{code}")
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    return folder / "site"


@pytest.mark.full
@pytest.mark.timeout(200)
def test_node_joins_however_long_its_agents_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_nodes.make_token(tmp_path / "token")
    held = site(tmp_path, monkeypatch, (
        "here = pathlib.Path(__file__).parent\n"
        "name = next((word for word in sys.orig_argv if 'agent' in word), None)\n"
        "if name and name.endswith('.py'):\n"
        "    (here / f'{pathlib.Path(name).stem}-waits').touch()\n"
        "    (here / 'gate').read_text()\n"
    ))  # fmt: skip
    os.mkfifo(held / "gate")

    async def run() -> None:
        node = await RayNode.start(head(tmp_path))
        try:
            await asyncio.to_thread(
                until, lambda: len([*held.glob("*-waits")]) == 2, "both agents were started", 60
            )
        finally:
            await node.stop()

    asyncio.run(run())


@pytest.mark.full
@pytest.mark.timeout(200)
def test_agent_for_runtime_environments_listens_on_the_port_that_is_held(tmp_path: Path) -> None:
    ray_nodes.make_token(tmp_path / "token")

    async def run() -> None:
        node = await RayNode.start(head(tmp_path))
        try:
            at = (HEAD.host, node._agent_port.getsockname()[1])
            await asyncio.to_thread(until, lambda: listens(*at), "the agent listens", 60)
        finally:
            await node.stop()

    asyncio.run(run())


def listens(host: str, port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0


@pytest.mark.full
@pytest.mark.timeout(200)
def test_node_that_ray_gives_up_as_slow_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The words are Ray's own.
    ray_package = importlib.util.find_spec("ray")
    assert ray_package is not None and ray_package.origin is not None
    words = "The current node timed out during startup. This could happen because"
    source = (Path(ray_package.origin).parent / "_private" / "node.py").read_text()
    assert words in source.replace('"\n                        "', "")

    ray_nodes.make_token(tmp_path / "token")
    site(tmp_path, monkeypatch, (
        "first = pathlib.Path(__file__).parent / 'first'\n"
        "if 'caraway_core.ray_nodes.ray_start' in sys.orig_argv and not first.exists():\n"
        "    first.touch()\n"
        f"    print('Exception: {words} some of the raylet failed', flush=True)\n"
        "    os._exit(1)\n"
    ))  # fmt: skip

    async def run() -> None:
        node = await RayNode.start(head(tmp_path))
        await node.stop()

    asyncio.run(run())
    assert [record.message for record in caplog.records] == ["Ray node starts again"]


@pytest.mark.full
@pytest.mark.timeout(200)
def test_password_of_the_redis_is_on_no_command_line(tmp_path: Path) -> None:
    password = f"pass word's \"{uuid.uuid4().hex}"
    ray_nodes.make_token(tmp_path / "token")

    async def run(url: str) -> list[str]:
        node = await RayNode.start(head(tmp_path, store=GcsStore.parse(url)))
        try:
            return processes.command_lines()
        finally:
            await node.stop()

    with valkey.serving(tcp=True) as server:
        server.config(requirepass=password)
        url = server.tcp_url.replace("://", f"://:{quote(password, safe='')}@")
        lines = asyncio.run(run(url))
        with redis.Redis.from_url(url) as client:
            keys = client.dbsize()

    assert keys, "the state server signed in"
    assert [line for line in lines if "--fromenv=redis_password" in line]
    assert not [line for line in lines if password in line or password[-32:] in line]


@pytest.mark.full
@pytest.mark.timeout(200)
def test_node_that_cannot_start_says_what_ray_said(tmp_path: Path) -> None:
    ray_nodes.make_token(tmp_path / "token")
    broken = head(tmp_path, worker_ports=(5, 4))
    with pytest.raises(NodeFailedError, match="the Ray node ended"):
        asyncio.run(RayNode.start(broken))


@pytest.mark.full
@pytest.mark.timeout(200)
def test_killed_process_takes_its_node_with_it(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    ray_nodes.make_token(tmp_path / "token")
    address = str(Address("127.201.8.1", HEAD.port + 1000))
    process = start(tmp_path, mark, "head", "head", "--address", address).wait_up()
    assert any("gcs_server" in title for title in marked(mark).values())
    process.kill()
    until(lambda: not marked(mark), "no process is left")
    close_sessions(tmp_path)
