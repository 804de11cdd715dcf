"""`POST /v1/verdicts`: verdicts of users on answers, as lines of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.runtime import running

MANIFEST = "runtime: {auth: {api-key: {enabled: true, keys: ['ada:rw', 'eve:ro']}}}\ndatasets: []"
ADA = {"x-api-key": "ada"}
GIVEN = {"verdict": "up", "model": "m", "question": "how many?", "answer": None, "sql": "SELECT 1"}
WRONG: list[Any] = [
    {}, [], None, 1, "up", {"verdict": "sideways"}, {"verdict": ["up"]}, {"verdict": {}},
    {"verdict": "up", "path": "/etc/passwd"}, {"verdict": "up", "answer": 1},
    {"verdict": "up", "comment": "x" * 40_000}, {"verdict": "up", "at": "now"},
]  # fmt: skip


async def test_a_verdict_is_a_line_with_its_time_and_sender(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        answer = await runtime.api.post("/v1/verdicts", json=GIVEN, headers=ADA)
        assert (answer.status_code, answer.content) == (204, b"")
        path = runtime.services.verdicts.path
        (line,) = [json.loads(each) for each in path.read_text().splitlines()]
        assert line.pop("at").endswith("+00:00") and line.pop("principal").startswith("key-")
        assert line == {name: value for name, value in GIVEN.items() if value is not None}
        for wrong in WRONG:
            answer = await runtime.api.post("/v1/verdicts", json=wrong, headers=ADA)
            assert answer.status_code == 400, wrong
            assert len(answer.json()["error"]) < 300
        large = await runtime.api.post("/v1/verdicts", content=b"x" * 300_000, headers=ADA)
        assert large.status_code == 413
        assert len(path.read_text().splitlines()) == 1


@pytest.mark.parametrize(("key", "status"), [({"x-api-key": "eve"}, 403), ({}, 401)])
async def test_only_keys_that_may_write_judge(
    tmp_path: Path, key: dict[str, str], status: int
) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        answer = await runtime.api.post("/v1/verdicts", json=GIVEN, headers=key)
        assert answer.status_code == status
        assert not runtime.services.verdicts.path.exists()
