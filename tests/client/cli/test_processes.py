from pathlib import Path

import pytest

from caraway_core.settings import (
    Address,
    ExecutorOptions,
    HeadOptions,
    JoinOptions,
    RunOptions,
    SchedulerOptions,
)
from tests.client.cli.conftest import Command

HEAD = Address("127.0.0.2", 6390)
JOIN = JoinOptions(head=HEAD, token_file=Path(".caraway/head/token"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The arguments of each command of a process, which exits with 3."""
    calls: list[tuple[object, ...]] = []

    def start(*options: object) -> int:
        calls.append(options)
        return 3

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", lambda *_: start)
    return calls


def test_the_scheduler_takes_the_options_of_run_and_its_own(
    caraway: Command, started: list[tuple[object, ...]]
) -> None:
    shown = caraway(
        *("scheduler", "shop.yaml", "--http", ":0", "--head", "10.0.0.1:1", "--id", "s1"),
        *("--node-ip", "10.0.0.2", "--token-file", "/t", "--object-store-memory", "1GiB"),
        *("--state", "redis://r", "--limits-file", "/l", "--watch", "--ready-fd", "5"),
        *("--shutdown-delay", "1.5"),
    )

    assert shown.exit_code == 3
    ((run, joining),) = started
    assert run == RunOptions(
        manifest=Path("shop.yaml"),
        http=Address("127.0.0.1", 0),
        flight=Address("127.0.0.1", 50051),
        metrics=Address("127.0.0.1", 9090),
        data_dir=Path(".caraway/scheduler"),
        watch=True,
        limits_file=Path("/l"),
        shutdown_delay_s=1.5,
        ready_fd=5,
    )
    join = JoinOptions(Address("10.0.0.1", 1), Path("/t"), "10.0.0.2", 1024**3)
    assert joining == SchedulerOptions(join=join, scheduler_id="s1", state="redis://r")


def test_the_data_directories_of_run_and_scheduler_differ(
    caraway: Command, started: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARAWAY_DATA_DIR", "/from/environment")
    caraway("scheduler")
    monkeypatch.delenv("CARAWAY_DATA_DIR")
    caraway("run")
    caraway("scheduler")

    directories = [run.data_dir for run, *_ in started if isinstance(run, RunOptions)]
    assert [str(each) for each in directories] == [
        "/from/environment", ".caraway", ".caraway/scheduler",
    ]  # fmt: skip


def test_head_and_executor_have_defaults(
    caraway: Command, started: list[tuple[object, ...]]
) -> None:
    caraway("head")
    caraway("executor")

    assert started == [
        (HeadOptions(address=HEAD, data_dir=Path(".caraway/head")),),
        (ExecutorOptions(join=JOIN, data_dir=Path(".caraway/executor")),),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scheduler", "--head", "nowhere"), "--head: 'nowhere' is not an address"),
        (("scheduler", "--http", "nowhere"), "--http: 'nowhere' is not an address"),
        (("executor", "--memory", "lots"), "--memory"),
        (("executor", "--cores", "-1"), "--cores"),
        (("executor", "--object-store-memory", "-1"), "--object-store-memory"),
        (("executor", "--drain-timeout", "soon"), "--drain-timeout"),
        (("head", "--ready-fd", "-1"), "--ready-fd"),
        (("scheduler", "a.yaml", "b.yaml"), "unexpected extra argument"),
    ],
)
def test_invalid_options_are_usage_errors(
    caraway: Command, started: list[tuple[object, ...]], arguments: tuple[str, ...], message: str
) -> None:
    shown = caraway(*arguments)

    assert shown.exit_code == 2
    assert message in shown.stderr
    assert started == []
