from pathlib import Path

import pytest

from caraway_kube import naming
from caraway_kube.resources import problems, reference
from caraway_operator.manifests import sizing

PAGE = Path(__file__).parents[3] / "docs/reference/kubernetes.md"


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text()
    assert written == reference.page(written), (
        f"write it again: python -m caraway_kube.resources.reference {PAGE.name}"
    )


def test_fields_have_type_default_and_meaning() -> None:
    text = reference.text()
    assert "| `spec.executor.replicas` | 0 to 1000 | `2` | Number of executors." in text
    assert '| `spec.executor.cache.size` | quantity | `"10Gi"` | Size of the volume. |' in text
    assert "| `spec.secrets[].secretName` | string | required | Name of the Secret. |" in text
    assert "| `resources.requests` | map of quantity |" in text
    assert "spec.head.resources" not in text


@pytest.mark.parametrize("part", naming.PARTS)
def test_the_page_names_every_object(part: str) -> None:
    assert f"`<cluster>-{part}`" in PAGE.read_text()


def test_the_page_lists_the_default_resources() -> None:
    text = PAGE.read_text()
    for component in (naming.HEAD, naming.SCHEDULER, naming.EXECUTOR):
        cpu, memory = sizing.DEFAULTS[component]
        least = problems.MINIMUM_MEMORY_MIB[component]
        assert f"| {component} | {cpu} | {memory} | {least}Mi |" in text
