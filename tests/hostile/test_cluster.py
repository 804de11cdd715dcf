"""Hostile statements against a scheduler and two executors."""

from collections.abc import Iterator

import pytest

from tests.hostile import serving
from tests.hostile.serving import Clustered, by_http, by_job
from tests.hostile.statements import QUICK

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clustered]:
    with serving.cluster(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.mark.parametrize("name", QUICK)
def test_a_statement_harms_only_itself(clustered: Clustered, name: str) -> None:
    problems, answer, _ = clustered.judge(name, by_http)
    assert problems == [], answer


@pytest.mark.parametrize("name", QUICK)
def test_a_job_harms_only_itself(clustered: Clustered, name: str) -> None:
    problems, answer, _ = clustered.judge(name, by_job)
    assert problems == [], answer
