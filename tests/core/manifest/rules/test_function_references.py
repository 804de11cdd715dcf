"""Functions of a manifest: names that are taken, bodies that fail, and calls in other texts."""

from dataclasses import replace
from pathlib import Path

import pytest

from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules.function_references import FunctionReferences
from caraway_core.sqltext.sql_functions import SqlFunction
from tests.core.manifest.conftest import Loads

ARGUMENTS = "signature: {args: [{name: x, type: int}], returns: int}"


@pytest.fixture
def function(loads: Loads) -> SqlFunction:
    (made,) = loads(f"functions: [{{name: one, body: x, {ARGUMENTS}}}]").functions
    return made


def declared(name: str, body: str, key: str = "body") -> Document:
    return document.parse(f"# a comment\nname: {name}\n{key}: {body!r}\n", Path("f.yaml"))


def of(function: SqlFunction, *named: tuple[str, str]) -> FunctionReferences:
    references = FunctionReferences()
    for name, body in named:
        made = replace(function, name=name, body=body)
        assert list(references.add(made, declared(name, body))) == []
    return references


def problems(references: FunctionReferences, **tables: str) -> list[str]:
    return [f"{each.path}: {each.message}" for each in references.problems(tables, {})]


def test_name_that_is_taken_says_where(function: SqlFunction) -> None:
    references = of(function, ("one", "x"))
    (problem,) = references.add(function, declared("one", "x + 1"))
    assert problem.path == "name" and "is declared at f.yaml:2" in problem.message
    assert problems(references) == []
    assert references.expanded("SELECT one(1)", pytest.fail) != "SELECT one(1)"


def test_name_of_a_table_or_a_tool_is_taken(function: SqlFunction) -> None:
    references = of(function, ("one", "x"))
    (problem,) = problems(references, one="d.yaml:7")
    assert problem == "name: the name 'one' is taken: a table is declared at d.yaml:7"
    (other,) = references.problems({}, {"one": object()})
    assert "is taken by a tool" in other.message
    silent = FunctionReferences()
    assert not list(silent.add(replace(function, as_tool=False), declared("one", "x")))
    assert list(silent.problems({}, {"one": object()})) == []


def test_functions_call_each_other_in_any_order(function: SqlFunction) -> None:
    references = of(function, ("outer_one", "inner_one(x) + 1"), ("inner_one", "x * 2"))
    assert problems(references) == []
    expanded = references.expanded("SELECT outer_one(3)", pytest.fail)
    assert "inner_one" not in expanded and "* 2" in expanded and "+ 1" in expanded
    assert [each.name for each in references.functions] == ["outer_one", "inner_one"]


def test_circle_is_one_problem_and_others_still_work(function: SqlFunction) -> None:
    """Those that call it would fail for the same reason."""
    references = of(
        function, ("one", "two(x)"), ("two", "one(x)"), ("caller", "one(x)"), ("good", "x")
    )
    (problem,) = problems(references)
    assert problem.startswith("body: ")
    assert [each.name for each in references.functions] == ["good"]


def test_functions_that_are_off_are_not_put_into_texts(function: SqlFunction) -> None:
    references = of(function, ("one", "one(x)"))
    references.is_on = False
    assert problems(references) == []
    assert references.functions == ()
    assert references.expanded("SELECT one(1)", pytest.fail) == "SELECT one(1)"


def test_wrong_call_in_a_text_is_reported_and_the_text_kept(function: SqlFunction) -> None:
    references = of(function, ("one", "x"))
    assert problems(references) == []
    found: list[str] = []
    assert references.expanded("SELECT one(1, 2, 3)", found.append) == "SELECT one(1, 2, 3)"
    assert len(found) == 1 and "one" in found[0]


def test_long_chain_of_functions_has_no_problem(function: SqlFunction) -> None:
    named = [("f0", "x"), *((f"f{n}", f"f{n - 1}(x)") for n in range(1, 8))]
    references = of(function, *named)
    assert problems(references) == []
    assert len(references.functions) == 8
