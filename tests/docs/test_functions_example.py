"""The example of functions answers what the guide says that it answers."""

import json
import re
from pathlib import Path

from tests.kit.runtime import running

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "functions.md").read_text()
_STATEMENT = re.compile(r"^\| `(SELECT .*?)` \| `(.*?)` \|$", re.MULTILINE)


async def test_the_example_answers_as_the_guide_shows(tmp_path: Path) -> None:
    manifest = "\n".join(re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL))
    shown = _STATEMENT.findall(GUIDE)
    assert len(shown) == 4
    async with running(tmp_path, manifest) as runtime:
        values = "(1, 'north', 10), (2, 'south', 20), (3, 'north', 30)"
        assert all(f"`{value}`" in GUIDE for value in re.findall(r"\(.*?\)", values))
        await runtime.sql(f"INSERT INTO orders VALUES {values}")
        for sql, rows in shown:
            assert (await runtime.sql(sql)).json() == json.loads(rows), sql
        sql, rows = re.findall(r"^`(SELECT .*?)` then gives `(.*?)`", GUIDE, re.MULTILINE)[0]
        assert (await runtime.sql(sql)).json() == json.loads(rows)
        answer = await runtime.api.post("/v1/tools/net_price", json={"gross": 10})
        assert f"\n{answer.text}\n" in GUIDE
