"""Runs `@copilotkit/aimock`, a provider of models with faults; `make test-npm` installs it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

PACKAGE = Path(os.environ.get("CARAWAY_NPM", ".venv/npm")) / "node_modules/@copilotkit/aimock"
KEY = "mock-key"
_LISTENING = re.compile(r"listening on (http://\S+)")


class Aimock:
    """A server that runs; its faults are set by HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def faults(self, **rates: float) -> None:
        """Set the rates of faults for every request, and end all others."""
        self._control("POST" if rates else "DELETE", "chaos", rates)

    def requests(self) -> list[Any]:
        """Return the requests that were made so far."""
        found: list[Any] = self._control("GET", "journal", None)
        return found

    def _control(self, method: str, path: str, body: Any) -> Any:
        answer = httpx.request(method, f"{self.url}/__aimock/{path}", json=body,
                               headers={"authorization": f"Bearer {KEY}"})  # fmt: skip
        return answer.raise_for_status().json()


@contextmanager
def aimock(folder: Path, fixtures: list[Any], *, is_open: bool = False) -> Iterator[Aimock]:
    """Run a server with these fixtures until the block ends; skip without the package.

    It asks for `KEY`, unless it is open.
    """
    if not PACKAGE.exists():
        pytest.skip("the npm package is not installed; run `make test-npm`")
    path = folder / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures}))
    # The text of a stream comes in chunks of 5 characters.
    process = subprocess.Popen(
        ["node", str(PACKAGE.resolve() / "dist/cli.js"), "--port", "0", "--fixtures", str(path),
         "--chunk-size", "5", "--strict"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ if is_open else {**os.environ, "AIMOCK_API_KEYS": KEY},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := _LISTENING.search(line):
                yield Aimock(found[1])
                break
        else:
            raise RuntimeError(f"aimock did not start: exit code {process.wait()}")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
