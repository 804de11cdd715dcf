"""What `make test` leaves out is run by a stage that fails CI."""

import re

import pytest
from _pytest.mark.expression import Expression

from tools import graph

MAKEFILE = (graph.ROOT / "Makefile").read_text()
STAGES = (graph.ROOT / ".ci" / "run").read_text().splitlines()
GATES = ("test", "test-answers")


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}: setup\n\t(.*)$", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


def _selects(target: str, marks: frozenset[str]) -> bool:
    selection = re.findall(r'-m "([^"]*)"', _recipe(target))[-1]
    return Expression.compile(selection).evaluate(lambda name, /, **_: name in marks)


@pytest.mark.parametrize("marks", [frozenset(), frozenset({"answers"})])
def test_each_test_that_is_not_full_is_run_by_one_target(marks: frozenset[str]) -> None:
    assert sum(_selects(target, marks) for target in GATES) == 1
    assert not any(_selects(target, marks | {"full"}) for target in GATES)


@pytest.mark.parametrize("target", GATES)
def test_ci_fails_with_each_of_them(target: str) -> None:
    assert f"tests make {target}" in STAGES


def test_answers_are_compared_only_where_their_target_looks() -> None:
    named = re.search(r"^ANSWERS := (.*)$", MAKEFILE, re.MULTILINE)
    assert named and "$(ANSWERS)" in _recipe("test-answers")
    looked = [graph.ROOT / path for path in named[1].split()]
    marked = [
        path for path in (graph.ROOT / "tests").rglob("*.py") if "mark.answers" in path.read_text()
    ]
    assert [path for path in looked if not path.exists()] == []
    others = [path for path in marked if not any(map(path.is_relative_to, looked))]
    assert [path for path in others if path.name != "test_stages.py"] == []
