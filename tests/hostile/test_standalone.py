"""Hostile statements against `caraway run`, over every protocol."""

from collections.abc import Iterator

import pytest

from tests.hostile import serving
from tests.hostile.serving import Served, by_flight, by_http, by_job
from tests.hostile.statements import LIKE_OTHERS, QUICK, STATEMENTS

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.mark.parametrize("name", [each for each in QUICK if each not in LIKE_OTHERS])
def test_a_statement_harms_only_itself(served: Served, name: str) -> None:
    problems, answer, _ = served.judge(name, by_http)
    assert problems == [], answer


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - set(QUICK) | LIKE_OTHERS))
def test_every_other_statement_harms_only_itself(served: Served, name: str) -> None:
    problems, answer, _ = served.judge(name, by_http)
    assert problems == [], answer


@pytest.mark.full
@pytest.mark.parametrize("name", QUICK)
def test_a_job_harms_only_itself(served: Served, name: str) -> None:
    problems, answer, _ = served.judge(name, by_job)
    assert problems == [], answer


@pytest.mark.full
@pytest.mark.parametrize("name", QUICK)
def test_a_flight_statement_harms_only_itself(served: Served, name: str) -> None:
    problems, answer, _ = served.judge(name, by_flight)
    assert problems == [], answer
