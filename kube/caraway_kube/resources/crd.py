"""Generates the CustomResourceDefinitions: `python -m caraway_kube.resources.crd DIR`."""

import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from caraway_kube import naming
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_kube.resources.schemas import structural
from caraway_kube.resources.status import CarawayClusterStatus

# Without a path, the message that users see begins with `<nil>`.
_NAME_RULES = [
    {
        "fieldPath": ".metadata.name",
        "rule": f"size(self.metadata.name) <= {naming.MAX_NAME_LENGTH}",
        "message": f"the name may have at most {naming.MAX_NAME_LENGTH} characters, to leave room "
        "for the names of pods",
    },
    {
        "fieldPath": ".metadata.name",
        "rule": f"self.metadata.name.matches('{naming.NAME_PATTERN}')",
        "message": "the name must consist of lowercase letters, digits and '-', and begin with a "
        "letter, because it is the name of a Service",
    },
    {
        "fieldPath": ".metadata.name",
        "rule": f"!self.metadata.name.matches('-({'|'.join(naming.PARTS)})$')",
        "message": "the name could be that of an object of another cluster; choose one that does "
        f"not end in -{', -'.join(naming.PARTS)}",
    },
]
_COLUMNS = (
    ("Phase", "string", ".status.phase"),
    ("Schedulers", "string", ".status.schedulersReady"),
    ("Executors", "string", ".status.executorsReady"),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    ("Age", "date", ".metadata.creationTimestamp"),
)
_MORE_COLUMNS = (
    ("Version", "string", ".status.version"),
    ("Message", "string", ".status.message"),
)


def cluster() -> dict[str, Any]:
    """Return the CRD of `CarawayCluster`."""
    schema = _resource(CarawayClusterSpec, "A Caraway cluster.")
    schema["properties"]["status"] = structural(CarawayClusterStatus)
    schema["x-kubernetes-validations"] = _NAME_RULES
    version = {
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.executor.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            *(_column(*column) for column in _COLUMNS),
            *({**_column(*column), "priority": 1} for column in _MORE_COLUMNS),
        ],
    }
    return _definition(naming.CLUSTER_KIND, naming.CLUSTERS, "cwc", version)


def limits() -> dict[str, Any]:
    """Return the CRD of `CarawayLimits`."""
    schema = _resource(CarawayLimitsSpec, "Limits for the clusters of an organization.")
    columns = (
        ("Organization", "string", ".spec.organization"),
        ("Replicas", "integer", ".spec.replicas"),
        ("CPU", "integer", ".spec.resources.max_cpu"),
        ("Memory (Gi)", "integer", ".spec.resources.max_memory_gi"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    version = {
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [_column(*column) for column in columns],
    }
    return _definition(naming.LIMITS_KIND, naming.LIMITS, "cwl", version)


def files() -> dict[str, str]:
    """Return the CRDs as YAML, by file name."""
    return {
        f"{definition['metadata']['name']}.yaml": yaml.safe_dump(
            definition, sort_keys=False, width=120, default_flow_style=False
        )
        for definition in (cluster(), limits())
    }


def _resource(spec: type[BaseModel], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # A CRD may not restrict other metadata. The lengths bound the cost of the CEL rules.
            "metadata": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 253},
                    "generateName": {"type": "string", "maxLength": 253},
                },
            },
            "spec": structural(spec),
        },
    }


def _column(name: str, kind: str, path: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path}


def _definition(kind: str, plural: str, short: str, version: dict[str, Any]) -> dict[str, object]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{naming.GROUP}"},
        "spec": {
            "group": naming.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": ["caraway"],
            },
            "versions": [{"name": naming.VERSION, "served": True, "storage": True, **version}],
        },
    }


def main(arguments: list[str]) -> int:
    """Write the CRDs into a directory, or to standard output."""
    for name, text in files().items():
        if arguments:
            Path(arguments[0], name).write_text(text)
        else:
            sys.stdout.write(f"---\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
