"""The families of all metrics pages, as they are pinned: dashboards and alerts name them.

`families.txt` has a line for each: the component, the name on the page, its type, its labels.
Written again with CARAWAY_WRITE_DOCS=1.
"""

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from caraway_cluster.store import metrics as store_metrics
from caraway_executor.endpoints import metrics as executor_metrics
from caraway_gateway import metrics as gateway_metrics
from caraway_management.api import metrics as management_metrics
from caraway_serving.metric_families import Family
from tests.kit.runtime import running

LIST = Path(__file__).with_name("families.txt")
_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
OF_PROCESS = "process_", "python_"


class Empty(Collector):
    """A page with one family and no values."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def rows() -> Iterator[tuple[str, Family[object]]]:
    gateway = [
        importlib.import_module(f"{gateway_metrics.__name__}.{each.name}")
        for each in pkgutil.iter_modules(gateway_metrics.__path__)
    ]
    for module in (*gateway, executor_metrics, management_metrics, store_metrics):
        component = module.__name__.partition(".")[0].removeprefix("caraway_")
        for value in vars(module).values():
            if isinstance(value, tuple) and value and isinstance(value[0], Family):
                yield from ((component, row) for row in value)


def line(component: str, row: Family[object]) -> str:
    registry = CollectorRegistry()
    registry.register(Empty(row.kind(row.name, row.help, labels=row.labels.split())))
    (found,) = _TYPE.findall(generate_latest(registry).decode())
    return " ".join([component, *found, *row.labels.split()])


def test_families_are_the_pinned_ones() -> None:
    found = "".join(f"{each}\n" for each in sorted({line(*row) for row in rows()}))
    if os.environ.get("CARAWAY_WRITE_DOCS"):
        LIST.write_text(found)
    assert found == LIST.read_text(), "write it again with CARAWAY_WRITE_DOCS=1 if that is meant"


async def test_page_of_a_scheduler_has_its_pinned_families(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        page = (await runtime.metrics.get("/metrics")).text
    found = {name: kind for name, kind in _TYPE.findall(page) if not name.startswith(OF_PROCESS)}
    lines = (each.split() for each in LIST.read_text().splitlines())
    pinned = {name: kind for component, name, kind, *_ in lines if component == "gateway"}
    assert {name: found.get(name) for name in pinned} == pinned
    assert found.keys() - pinned.keys() == {"caraway_build_info"}
