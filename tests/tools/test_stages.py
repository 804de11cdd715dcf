"""What `make test` leaves out is run by a stage that fails CI."""

import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tools import graph

MAKEFILE = (graph.ROOT / "Makefile").read_text()
STAGES = (graph.ROOT / ".ci" / "run").read_text().splitlines()
GATES = ("test", "test-integration", "test-answers")
_IN_EITHER = frozenset({"test", "test-integration"})
"""The gates that divide tests by path; others do it by mark."""


def _paths(variable: str) -> list[Path]:
    found = re.search(rf"^{variable} := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert found, variable
    return [graph.ROOT / path for path in found[1].replace("\\\n", " ").split()]


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}: setup\n\t(.*)$", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


def _selects(target: str, marks: frozenset[str]) -> bool:
    selection = re.findall(r'-m "([^"]*)"', _recipe(target))[-1]
    return Expression.compile(selection).evaluate(lambda name, /, **_: name in marks)


@pytest.mark.parametrize("marks", [frozenset(), frozenset({"answers"})])
def test_each_test_that_is_not_full_is_run_by_one_target(marks: frozenset[str]) -> None:
    selecting = {target for target in GATES if _selects(target, marks)}
    assert len(selecting) == 1 or selecting == _IN_EITHER
    assert not any(_selects(target, marks | {"full"}) for target in GATES)


@pytest.mark.parametrize("target", GATES)
def test_ci_fails_with_each_of_them(target: str) -> None:
    assert f"tests make {target}" in STAGES


def test_answers_are_compared_only_where_their_target_looks() -> None:
    assert "$(ANSWERS)" in _recipe("test-answers")
    looked = _paths("ANSWERS")
    marked = [
        path for path in (graph.ROOT / "tests").rglob("*.py") if "mark.answers" in path.read_text()
    ]
    assert [path for path in looked if not path.exists()] == []
    others = [path for path in marked if not any(map(path.is_relative_to, looked))]
    assert [path for path in others if path.name != "test_stages.py"] == []


def test_paths_of_integration_are_left_out_by_one_target_and_run_by_the_other() -> None:
    paths = _paths("INTEGRATION")
    assert [path for path in paths if not path.exists()] == []
    assert len(paths) == len(set(paths)) > 1
    assert _recipe("test").endswith("$(INTEGRATION:%=--ignore=%)")
    assert _recipe("test-integration").endswith(" $(INTEGRATION)")


def test_no_path_of_integration_has_answers_to_compare() -> None:
    for path in _paths("INTEGRATION"):
        assert not any(map(path.is_relative_to, _paths("ANSWERS")))
