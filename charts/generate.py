"""Generates files from the values.yaml and CRDs of the chart: schema, README and reference.

Run it after you change values.yaml, the CRDs or the rules of the operator; a test compares them.
"""
# ruff: noqa: INP001 -- a script for people to run, not part of a package.

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from caraway_kube import rbac
from caraway_management.deployers.kubernetes import rules as management_rules
from caraway_operator import rules

CHART = Path(__file__).parent / "caraway"
REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "chart.md"
_KEY = re.compile(r"(?P<indent> *)(?P<name>[A-Za-z]\w*):(?P<value>.*)")
_DEFAULT_LENGTH = 60

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
ANY_OBJECT: Schema = {"type": "object"}
ANY_OBJECTS: Schema = {"type": "array", "items": ANY_OBJECT}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
NAME_OR_EMPTY: Schema = {"anyOf": [NAME, {"const": ""}]}
QUANTITIES: Schema = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9.]+\w*$"}]
    },
}


def closed(**properties: Schema) -> Schema:
    """Return the schema of an object with exactly these keys allowed."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


IMAGE = closed(repository=TEXT, tag=TEXT, digest=TEXT)
SECRET_KEY = closed(secretName=NAME_OR_EMPTY, key=TEXT)
PEERS: Schema = {"type": ["array", "null"], "items": ANY_OBJECT}
RESOURCES = closed(requests=QUANTITIES, limits=QUANTITIES)
PATH = {
    **closed(path=TEXT, pathType={"enum": ["Prefix", "Exact", "ImplementationSpecific"]}),
    "required": ["path"],
}


def schema(cluster_spec: Schema) -> Schema:
    """Return the schema of the values. `cluster_spec` is that of the CRD."""
    operator = closed(
        enabled=FLAG,
        external=FLAG,
        replicas=COUNT,
        watchNamespaces={"type": "array", "items": NAME, "uniqueItems": True},
        image=IMAGE,
        logFormat={"enum": ["json", "text"]},
        resources=RESOURCES,
        serviceAccount=closed(create=FLAG, name=NAME_OR_EMPTY, annotations=TEXTS),
        rbac=closed(create=FLAG),
        podLabels=TEXTS,
        podAnnotations=TEXTS,
        env=ANY_OBJECTS,
        nodeSelector=TEXTS,
        affinity=ANY_OBJECT,
        tolerations=ANY_OBJECTS,
        priorityClassName=NAME_OR_EMPTY,
        podMonitor=closed(enabled=FLAG, labels=TEXTS),
    )
    management = closed(
        enabled=FLAG,
        replicas=COUNT,
        image=IMAGE,
        installation={"type": "string", "pattern": "^([a-z]([-a-z0-9]{0,38}[a-z0-9])?)?$"},
        publicUrl=TEXT,
        platform=closed(configMapName=TEXT, key=TEXT),
        database=SECRET_KEY,
        keys=SECRET_KEY,
        migrate=FLAG,
        logFormat={"enum": ["json", "text"]},
        resources=RESOURCES,
        serviceAccount=closed(create=FLAG, name=NAME_OR_EMPTY, annotations=TEXTS),
        rbac=closed(create=FLAG),
        service=closed(type={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}, annotations=TEXTS),
        network=closed(policies=FLAG, clients=PEERS, egress=PEERS),
        ingress=_ingress(),
        podLabels=TEXTS,
        podAnnotations=TEXTS,
        env=ANY_OBJECTS,
        nodeSelector=TEXTS,
        affinity=ANY_OBJECT,
        tolerations=ANY_OBJECTS,
        priorityClassName=NAME_OR_EMPTY,
    )
    policies = {"enum": ["Always", "IfNotPresent", "Never"]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart caraway",
        **closed(
            # Helm sets these itself if the chart is a dependency of another one.
            **{"global": closed(
                imageRegistry=TEXT, imagePullSecrets={"type": "array", "items": NAME}
            ) | {"additionalProperties": True}},
            image=closed(repository={**TEXT, "minLength": 1}, tag=TEXT, digest=TEXT,
                         pullPolicy=policies),
            operator=operator,
            management=management,
            cluster=closed(
                enabled=FLAG,
                name={"type": "string", "maxLength": 40},
                annotations=TEXTS,
                labels=TEXTS,
                manifestFile=TEXT,
                spec=of_values(cluster_spec),
            ),
            ingress=_ingress(),
            gateway=closed(
                enabled=FLAG,
                parentRefs=ANY_OBJECTS,
                hostnames={"type": "array", "items": TEXT},
                annotations=TEXTS,
                labels=TEXTS,
                flight=FLAG,
            ),
            dashboard=closed(enabled=FLAG, labels=TEXTS, annotations=TEXTS),
            tests=closed(enabled=FLAG, apiKey=closed(name=NAME, key=TEXT)),
            extraObjects={"type": "array", "items": {"type": ["object", "string"]}},
        ),
    }  # fmt: skip


def _ingress() -> Schema:
    host = closed(host=TEXT, paths={"type": "array", "items": PATH, "minItems": 1})
    tls = closed(secretName=NAME, hosts={"type": "array", "items": TEXT})
    return closed(
        enabled=FLAG,
        className=TEXT,
        annotations=TEXTS,
        labels=TEXTS,
        hosts={"type": "array", "items": host},
        tls={"type": "array", "items": tls},
    )


def of_values(written: Schema) -> Schema:
    """Turn a structural schema of a CRD into one for values, which refuses unknown keys."""
    kept = {
        key: value
        for key, value in written.items()
        if not key.startswith("x-") and key not in ("default", "properties", "items", "format")
    }
    if written.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string", "number"]
    if "properties" in written:
        kept["properties"] = {k: of_values(v) for k, v in written["properties"].items()}
        kept["additionalProperties"] = False
    elif isinstance(written.get("additionalProperties"), dict):
        kept["additionalProperties"] = of_values(written["additionalProperties"])
    if "items" in written:
        kept["items"] = of_values(written["items"])
    if "type" in kept:
        # Null removes a default of the chart.
        known = kept["type"] if isinstance(kept["type"], list) else [kept["type"]]
        kept["type"] = [*known, "null"]
    if "enum" in kept:
        kept["enum"] = [*kept["enum"], None]
    return kept


@dataclass(frozen=True, slots=True)
class Value:
    """A value of values.yaml, with its comment."""

    path: str
    default: Any
    text: str


def documented(text: str) -> Iterator[Value]:
    """Yield the values that have a comment above them."""
    values = yaml.safe_load(text)
    parents: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
            continue
        if (match := _KEY.fullmatch(line)) is not None:
            depth = len(match["indent"]) // 2
            parents = [*parents[:depth], match["name"]]
            if comment:
                yield Value(".".join(parents), _at(values, parents), " ".join(comment))
        comment = []


def _at(values: Any, path: list[str]) -> Any:
    for name in path:
        values = values[name]
    return values


def table(found: list[Value]) -> str:
    """Return the values as a table in Markdown."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for value in found:
        default = json.dumps(value.default)
        if len(default) > _DEFAULT_LENGTH:
            default = "see values.yaml"
        elif isinstance(value.default, dict) and value.path == "image":
            default = "as below"
        rows.append(f"| `{value.path}` | `{default}` | {value.text.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"


def files() -> dict[Path, str]:
    """Return the text of each generated file."""
    definition = yaml.safe_load((CHART / "crds" / "carawayclusters.caraway.dev.yaml").read_text())
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    text = (CHART / "values.yaml").read_text()
    rows = table([value for value in documented(text) if value.path != "image"])
    return {
        CHART / "values.schema.json": json.dumps(schema(spec), indent=1) + "\n",
        CHART / "files" / "operator-rules.yaml": _rules(),
        CHART / "files" / "management-rules.yaml": _MANAGEMENT_RULES
        + yaml.safe_dump({"all": rbac.rendered(management_rules.RULES)}, sort_keys=False),
        CHART / "README.md": _README.format(table=rows),
        REFERENCE: _REFERENCE.format(table=rows),
    }


def _rules() -> str:
    found = {
        "namespaced": rbac.rendered(rules.RULES),
        "own": rbac.rendered(rules.OWN_RULES),
    }
    return _RULES + yaml.safe_dump(found, sort_keys=False)


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text)
        print(path)


_RULES = """\
# What the operator may do, made of caraway_operator.rules by `python charts/generate.py`:
# `namespaced` in every namespace that it looks after, `own` in its own.
"""

_MANAGEMENT_RULES = """\
# What the management service may do in all namespaces, made of
# caraway_management.deployers.kubernetes.rules by `python charts/generate.py`.
"""

_README = """# caraway

Installs an operator and one cluster of Caraway, a data and AI runtime that answers SQL over HTTP
and Arrow Flight.

```sh
helm install caraway charts/caraway --namespace caraway --create-namespace
helm test caraway --namespace caraway
```

It needs Kubernetes 1.31 or newer, Helm 3.17 or newer, and a default StorageClass. The defaults fit
a cluster of two cores and 4 GiB. [docs/operate](../../docs/operate/README.md) says what comes after
the installation.

This page is made of values.yaml by `python charts/generate.py`.

{table}"""

_REFERENCE = """# Values of the chart

All values of `charts/caraway`. `cluster.spec` has the fields of a `CarawayCluster`: this page lists
those with a default of the chart, and [kubernetes.md](kubernetes.md) lists all of them.
[operate/install.md](../operate/install.md) describes how to use them. `python charts/generate.py`
writes this page from values.yaml.

A value of null removes the default of the chart; the default of the CRD then applies.

{table}"""


if __name__ == "__main__":
    main()
