"""Memory that a runtime needs to send ten million rows."""

import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import data, servers
from bench.report import Figure

_ROWS = 10_000_000
_GOAL_MB = 300.0
_FORMS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")


def measure() -> list[Figure]:
    """Stream the rows in three formats and compare the peak with the idle size."""
    folder = data.tpch()
    with TemporaryDirectory() as place:
        manifest = Path(place) / "caraway.yaml"
        manifest.write_text(data.manifest(folder).read_text())
        with servers.caraway(manifest) as (url, process):
            drain(url, "application/json", 1_000)
            idle = servers.resident_mb(process)
            servers.reset_peak(process)
            for form in _FORMS:
                drain(url, form, _ROWS)
            raised = servers.peak_mb(process) - idle
    return [Figure("memory over idle while ten million rows are sent; the goal of 300 MB",
                   f"{raised:.0f} MB", f"{_GOAL_MB:.0f} MB", raised / _GOAL_MB, "≤ 1",
                   raised <= _GOAL_MB)]  # fmt: skip


def drain(url: str, form: str, rows: int) -> None:
    """Run a query with `rows` rows and read its result to the end."""
    sql = f"SELECT * FROM (SELECT * FROM lineitem UNION ALL SELECT * FROM lineitem) LIMIT {rows}"
    request = urllib.request.Request(
        f"{url}/v1/sql", sql.encode(), {"Content-Type": "text/plain", "Accept": form}
    )
    with urllib.request.urlopen(request) as answer:
        while answer.read(1 << 20):
            pass
