"""Runs the code of the guide."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.kit.processes import CARAWAY, child

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "python.md"


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = subprocess.run(
        [str(CARAWAY.parent / "python"), str(ROOT / "examples" / "make_data.py")], timeout=60
    )
    assert made.returncode == 0
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    assert len(blocks) > 8
    with child(tmp_path, ROOT / "examples" / "quickstart") as runtime:
        monkeypatch.setenv("CARAWAY_HTTP_URL", f"http://{runtime.addresses['http']}")
        monkeypatch.setenv("CARAWAY_FLIGHT_URL", f"grpc://{runtime.addresses['flight']}")
        # One after the other, as a reader types them: later blocks use names of earlier ones.
        exec(compile("\n".join(blocks), str(GUIDE), "exec"), {"__name__": "guide"})
