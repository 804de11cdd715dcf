"""Hostile bodies of change events are rejected, or become rows."""

import json
from collections.abc import Iterator, Mapping

import httpx
import pytest

from tests.hostile import serving
from tests.hostile.serving import Answer, Served
from tests.hostile.watching import watched
from tests.kit.deadlines import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
_EVENT = {"op": "c", "after": {"id": 1, "v": "a"}}

BODIES: Mapping[str, bytes] = {
    "deep lists": b"[" * 5_000_000,
    "deep objects": b'{"a":' * 2_000_000,
    "deep value": b'{"op":"c","after":{"id":1,"v":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "long text": json.dumps({"op": "c", "after": {"id": 1, "v": "x" * 30_000_000}}).encode(),
    "long number": b'{"op":"c","after":{"id":' + b"9" * 2_000_000 + b',"v":"a"}}',
    "exponent": b'{"op":"c","after":{"id":1e999999999,"v":"a"}}',
    "many columns": json.dumps(
        {"op": "c", "after": {"id": 1, **{f"c{i}": i for i in range(200_000)}}}
    ).encode(),
    "many events": json.dumps([{"op": "c", "after": {"id": i, "v": "a"}} for i in range(100_000)])
    .encode(),
    "one key": json.dumps([_EVENT] * 100_000).encode(),
    "not UTF-8": b'{"op":"c","after":{"id":1,"v":"' + b"\xff" * 1_000_000 + b'"}}',
    "escapes": b'{"op":"c","after":{"id":1,"v":"' + b"\\u0000" * 1_000_000 + b'"}}',
    "nothing": b"",
    "blanks": b" " * 20_000_000,
    "SQL": json.dumps({"op": "c", "after": {"id": 1, "v": "'); DROP TABLE t; --"}}).encode(),
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("bodies")) as made:
        yield made


def sent(url: str, body: bytes) -> httpx.Response:
    headers = {"content-type": "application/json"}
    path = f"{url}/v1/datasets/orders/cdc"
    return httpx.post(path, content=body, headers=headers, timeout=serving.WITHIN_S)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_harms_only_itself(served: Served, name: str) -> None:
    running = served.up()
    url = f"http://{running.addresses['http']}"
    event = json.dumps(_EVENT).encode()
    until(lambda: sent(url, event).status_code == 200, "changes are taken")
    answers: list[Answer] = []

    def send() -> None:
        try:
            got = sent(url, BODIES[name])
            answers.append(Answer(got.status_code, got.text))
        except httpx.HTTPError as exc:
            answers.append(Answer(0, repr(exc)))

    seen = watched([running.process.pid], url, send)
    assert answers[0].problems() + seen.problems() == []
    assert running.process.poll() is None
