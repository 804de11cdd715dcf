"""The table of the time per suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.suite_times import SuiteTimes, suite_of

ROOT = Path(__file__).parents[2]


def report(nodeid: str, when: str, duration: float) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid, ("x.py", 1, "x"), {}, "passed", None, when,  # type: ignore[arg-type]
        duration=duration, user_properties=[("processor_s", duration / 2), ("other", "text")],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "suite"),
    [
        ("tests/engine/test_bounds.py", "tests/engine"),
        ("tests/engine/stages/test_plans.py", "tests/engine/stages"),
        ("tests/plugins/changes/postgres/test_source.py", "tests/plugins/changes"),
    ],
)
def test_a_suite_is_a_folder(module: str, suite: str) -> None:
    assert suite_of(module) == suite


def test_all_phases_count_and_the_longest_comes_first() -> None:
    times = SuiteTimes()
    for when, duration in (("setup", 1.0), ("call", 2.0), ("teardown", 0.5)):
        times.pytest_runtest_logreport(report("tests/a/test_x.py::test_one", when, duration))
        times.pytest_runtest_logreport(report("tests/b/c/test_y.py::test[1::2]", when, 10.0))
    assert [line.split() for line in times.lines()] == [
        ["seconds", "cpu", "tests", "suite"],
        ["30.0", "15.0", "1", "tests/b/c"],
        ["3.5", "1.8", "1", "tests/a"],
        ["33.5", "16.8", "2", "in", "all"],
        ["seconds", "cpu", "module"],
        ["30.0", "15.0", "tests/b/c/test_y.py"],
        ["3.5", "1.8", "tests/a/test_x.py"],
    ]


@pytest.mark.full
def test_it_counts_what_the_workers_of_xdist_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        module = tmp_path / "tests" / name / "test_it.py"
        module.parent.mkdir(parents=True)
        busy = "def test_a():\n    import time\n    while time.process_time() < 2: ...\n"
        module.write_text(busy + "def test_b(): ...\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n2", "--dist=loadfile"]
    # Other plug-ins take seconds to load.
    outer = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    ran = subprocess.run(
        [*command, "-p", "tests.kit.suite_times"], cwd=tmp_path, capture_output=True, text=True,
        env={**outer, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, timeout=250,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    table = ran.stdout.partition("time per suite")[2]
    suites = {line.split()[-1]: line.split()[1:-1] for line in table.splitlines() if "/" in line}
    for suite in ("tests/one", "tests/two"):
        cpu_s, tests = suites[suite]
        assert float(cpu_s) > 0.5 and tests == "2"
