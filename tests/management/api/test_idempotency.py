"""A POST that is repeated with its key changes nothing again, whatever happened to the first."""

import secrets
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.engine import URL

from caraway_core.errors import UnavailableError
from caraway_management.api import app
from caraway_management.api.access import Caller, needs
from caraway_management.domain import refusals
from caraway_management.store.tables import IdempotentAnswer, Invitation
from tests.kit import management
from tests.kit.management import Installation

router = APIRouter()


class Thing(BaseModel):
    name: str


class Failing:
    """The faults of the next requests."""

    before_the_change = False
    after_the_change = False
    refuses = False


@router.post("/v1/things", status_code=201)
async def create_thing(
    body: Thing, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, Any]:
    if Failing.before_the_change:
        raise UnavailableError("away")
    async with caller.change() as change:
        change.on("thing", body.name)
        if Failing.refuses:
            raise refusals.conflict("taken", "taken")
        change.session.add(
            Invitation(
                org_id=caller.org.id, email=body.name, role="viewer",
                value_hash=secrets.token_hex(16), invited_by=1,
                created_at=change.now, expires_at=change.now,
            )
        )  # fmt: skip
    if Failing.after_the_change:
        raise RuntimeError("the process ends here")
    return {"name": body.name}


ROUTES = app.declare_with([router])


@pytest.fixture
def service(prepared_url: URL) -> Iterator[Installation]:
    for name in ("before_the_change", "after_the_change", "refuses"):
        setattr(Failing, name, False)
    with management.installation(prepared_url, is_prepared=True, routes=ROUTES) as made:
        yield made


def _things(service: Installation) -> list[str]:
    return service.rows(select(Invitation.email).order_by(Invitation.id))


def test_a_repeated_request_gets_the_first_answer(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller = service.sign_in(owner)
    key = {"idempotency-key": "k-1"}
    first = caller.post("/v1/things", {"name": "a"}, headers=key)
    again = caller.post("/v1/things", {"name": "a"}, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json() == {"name": "a"}
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert caller.post("/v1/things", {"name": "a"}, headers={"idempotency-key": "k-2"}).is_success
    assert _things(service) == ["a", "a"]


def test_a_key_is_of_one_request_and_of_one_credential(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller, other = service.sign_in(owner), service.sign_in(owner)
    key = {"idempotency-key": "k"}
    assert caller.post("/v1/things", {"name": "a"}, headers=key).is_success
    reused = caller.post("/v1/things", {"name": "b"}, headers=key)
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
    assert other.post("/v1/things", {"name": "b"}, headers=key).is_success
    assert _things(service) == ["a", "b"]


def test_refusals_are_kept_and_failures_run_again(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller = service.sign_in(owner)
    Failing.refuses = True
    answers = [
        caller.post("/v1/things", {"name": "a"}, headers={"idempotency-key": "refused"})
        for _ in range(2)
    ]
    assert [answer.json()["code"] for answer in answers] == ["taken", "taken"]
    assert answers[1].headers["idempotent-replayed"] == "true"
    Failing.refuses, Failing.before_the_change = False, True
    key = {"idempotency-key": "failed"}
    assert caller.post("/v1/things", {"name": "b"}, headers=key).status_code == 503
    Failing.before_the_change = False
    assert caller.post("/v1/things", {"name": "b"}, headers=key).status_code == 201
    assert _things(service) == ["b"]


def test_a_change_whose_answer_was_lost_is_not_made_twice(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller = service.sign_in(owner)
    Failing.after_the_change = True
    key = {"idempotency-key": "k"}
    assert caller.post("/v1/things", {"name": "a"}, headers=key).status_code == 500
    Failing.after_the_change = False
    again = caller.post("/v1/things", {"name": "a"}, headers=key)
    assert (again.status_code, again.json()["code"]) == (409, "idempotent_answer_lost")
    assert _things(service) == ["a"]


def test_a_request_under_way_is_not_repeated_until_its_process_must_have_ended(
    service: Installation,
) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller = service.sign_in(owner)
    key = {"idempotency-key": "k"}
    assert caller.post("/v1/things", {"name": "a"}, headers=key).is_success

    async def begin(session: Any) -> None:
        for row in await session.scalars(select(IdempotentAnswer)):
            row.status = 0

    service.change(begin)
    under_way = caller.post("/v1/things", {"name": "a"}, headers=key)
    assert under_way.status_code == 409
    assert under_way.json()["code"] == "idempotent_request_under_way"
    service.clock.advance(minutes=2)
    assert caller.post("/v1/things", {"name": "a"}, headers=key).status_code == 201


def test_keys_expire_and_wrong_ones_are_refused(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    caller = service.sign_in(owner)
    key = {"idempotency-key": "k"}
    assert caller.post("/v1/things", {"name": "a"}, headers=key).is_success
    service.clock.advance(hours=25)
    assert caller.post("/v1/things", {"name": "b"}, headers=key).is_success
    assert len(service.rows(select(IdempotentAnswer.key))) == 1
    for wrong in ("", "k" * 256):
        answer = caller.post("/v1/things", {"name": "a"}, headers={"idempotency-key": wrong})
        assert answer.status_code == 400
    assert service.anonymous().post("/v1/things", {}, headers=key).status_code == 401


def test_answers_are_kept_sealed(service: Installation) -> None:
    owner = service.add_user()
    service.add_org("acme", owner)
    name = "a-value-that-is-shown-once"
    key = {"idempotency-key": "k"}
    service.sign_in(owner).post("/v1/things", {"name": name}, headers=key)
    [kept] = service.rows(select(IdempotentAnswer.sealed_body))
    assert kept and name not in kept
