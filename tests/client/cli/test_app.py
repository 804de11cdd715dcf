import subprocess
import sys

import pytest

from caraway.cli import app
from caraway.errors import BrokenResponseError
from tests.client.cli.conftest import Command

HEAVY = ("httpx", "prompt_toolkit", "rich", "pyarrow", "datafusion", "caraway_gateway", "asyncio")


def test_without_a_command_the_help_is_shown(caraway: Command) -> None:
    shown = caraway()

    assert shown.exit_code == 2
    assert "Usage: caraway" in shown.output


def test_an_unknown_command_is_a_usage_error(caraway: Command) -> None:
    shown = caraway("fly")

    assert shown.exit_code == 2
    assert "No such command 'fly'" in shown.stderr


def test_ctrl_c_ends_with_130(caraway: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", interrupted)

    assert caraway("run").exit_code == 130


def test_an_error_prints_one_message_and_exits_with_1(
    caraway: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise BrokenResponseError("it broke")

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", broken)

    shown = caraway("run")

    assert (shown.exit_code, shown.stderr, shown.stdout) == (1, "error: it broke\n", "")


def test_debug_raises_the_error(caraway: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BrokenResponseError("it broke")

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", broken)

    assert isinstance(caraway("--debug", "run").exception, BrokenResponseError)


def test_an_os_error_prints_one_message(caraway: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", broken)

    shown = caraway("run")

    assert shown.exit_code == 1
    assert shown.stderr == "error: [Errno 98] Address already in use\n"


def test_a_bug_is_reported_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", broken)
    monkeypatch.setattr(sys, "argv", ["caraway", "run"])

    with pytest.raises(SystemExit) as ended:
        app.main()

    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "error: unexpected ZeroDivisionError: division by zero; "
        "this is a bug in Caraway; run `caraway --debug ...` to see the traceback\n"
    )


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["run", "--help"]])
def test_startup_does_not_import_slow_packages(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from caraway.cli import main\n"
        f"sys.argv = ['caraway', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )

    assert ran.stdout.splitlines()[-1] == "[]"
