"""Errors of filters have the line and the column of the text that was sent."""

import pytest

from caraway_assist.search import filter_syntax
from caraway_core.errors import InvalidQueryError, QueryError
from tests.kit.engine import rows, session


async def explained(where: str) -> InvalidQueryError | None:
    over = session({})

    async def run(sql: str) -> object:
        return await rows(over, sql)

    return await filter_syntax.explained(f"({where}\n)", run)


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("a = = 1", "Line: 1, Column: 5"),
        ("a = 1\nAND b = = 2", "Line: 2, Column: 9"),
        ("a =\n\n\n, 1", "Line: 4, Column: 1"),
    ],
)
async def test_places_are_those_of_the_text(where: str, place: str) -> None:
    found = await explained(where)
    assert found is not None
    assert found.message.startswith("where: syntax error: ")
    assert place in found.message


@pytest.mark.parametrize("where", ["a =", "a = 1 AND", "a IN"])
async def test_the_end_is_that_of_the_text(where: str) -> None:
    found = await explained(where)
    assert found is not None
    assert "found: the end" in found.message
    assert "Line" not in found.message


@pytest.mark.parametrize("where", ["a = 1", "true", "none_such(a)", "1 = 'x'"])
async def test_filters_that_can_be_read_have_no_error(where: str) -> None:
    assert await explained(where) is None


async def test_other_errors_are_not_of_the_syntax() -> None:
    async def run(_sql: str) -> object:
        raise QueryError("away")

    assert await filter_syntax.explained("(a)", run) is None
    assert not filter_syntax.is_wrong(InvalidQueryError("no column a"))
    assert filter_syntax.is_wrong(InvalidQueryError("syntax error: a"))
