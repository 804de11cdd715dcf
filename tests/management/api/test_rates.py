from pathlib import Path

import pytest
from starlette.testclient import TestClient

from caraway_management.api import app
from caraway_management.api.rates import RateCounter
from caraway_management.services import Rates, Services, utc_now
from caraway_management.store.database import Database, embedded
from tests.kit.clocks import Clock
from tests.kit.management import new_sealer


def test_a_sender_has_both_windows() -> None:
    clock = Clock()
    counter = RateCounter(Rates(per_minute=3, per_hour=5), clock)
    assert [counter.count("a").remaining for _ in range(3)] == [2, 1, 0]
    assert not counter.count("a").is_allowed
    assert counter.count("b").is_allowed
    clock.now += 60
    assert [counter.count("a").is_allowed for _ in range(3)] == [True, True, False]
    standing = counter.count("a")
    assert (standing.limit, standing.remaining, standing.reset_s) == (5, 0, 3_540)
    clock.now += 3_540
    assert counter.count("a").is_allowed


def test_quiet_senders_are_forgotten() -> None:
    counter = RateCounter(Rates(1, 1), Clock(), most=2)
    for sender in ("a", "b", "c"):
        assert counter.count(sender).is_allowed
    assert not counter.count("c").is_allowed
    assert counter.count("a").is_allowed


@pytest.mark.parametrize("path", ["/v1/orgs", "/v1/nothing"])
def test_responses_show_the_rate_and_429_says_when(tmp_path: Path, path: str) -> None:
    services = Services(Database(embedded(tmp_path)), new_sealer(utc_now), rates=Rates(2, 10))
    with TestClient(app.build(services)) as client:
        answers = [client.get(path) for _ in range(3)]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
        assert answers[2].status_code == 429
        assert int(answers[2].headers["retry-after"]) == 60
        assert "60 s" in answers[2].json()["error"]
        assert client.get("/v1/health").status_code == 200
