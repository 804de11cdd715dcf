"""The Grafana dashboard uses only metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kit import helm

DASHBOARD: dict[str, Any] = json.loads((helm.CHART / "dashboards" / "caraway.json").read_text())
METRICS = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
WORDS = {
    "and", "by", "clamp_min", "count", "histogram_quantile", "le", "max", "min", "on", "or",
    "rate", "sum", "time", "vector", "label_values",
}  # fmt: skip
"""Words of an expression that are not metrics."""


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def asked(expression: str) -> set[str]:
    """Return the metrics of an expression."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(by|on) \([^)]*\)", " ", expression)
    bare = re.sub(r", *(namespace|pod)\)$", ")", bare)
    return set(re.findall(r"\b[a-z][a-z_]{3,}[a-z]\b", bare)) - WORDS


def documented(metric: str) -> bool:
    # `process_*` stands for all of its family, and histograms for their parts.
    names = {metric, metric.removesuffix("_bucket")}
    return metric.startswith("process_") or any(f"`{name}`" in METRICS for name in names)


def test_every_metric_that_it_asks_for_is_documented() -> None:
    found = {metric for expression in expressions() for metric in asked(expression)}
    assert len(found) > 25
    assert {metric for metric in found if not documented(metric)} == set()


def test_panels_have_places_and_ids_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_the_chart_ships_it() -> None:
    found = helm.render({"dashboard": {"enabled": True, "annotations": {"folder": "data"}}})
    config = helm.the(found, "ConfigMap", "caraway-dashboard")
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config["data"]["caraway.json"]) == DASHBOARD
