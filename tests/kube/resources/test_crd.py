"""The CRDs, checked by rules of the API server that are in no schema of Kubernetes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cel
import jsonschema
import pytest
import yaml

from caraway_kube.resources import crd, manifest_checks, parsing, quantities
from tests.kit import kube_schemas
from tests.operator.manifests.clusters import EVERYTHING, MANIFEST

ROOT = Path(__file__).parents[3]
CHART, EXAMPLES = ROOT / "charts/caraway/crds", ROOT / "examples/kubernetes"
VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
CRDS = [crd.cluster(), crd.limits()]
_UNSTRUCTURAL = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "title", "const", "nullable"}


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    [version] = definition["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def walk(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if word in node:
            yield from walk(node[word], f"{path}[{word}]")


def rules(node: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = node.get("x-kubernetes-validations", [])
    return found


def test_the_crds_of_the_chart_are_up_to_date() -> None:
    for name, text in crd.files().items():
        assert (CHART / name).read_text() == text, (
            "write them again: python -m caraway_kube.resources.crd charts/caraway/crds"
        )
    assert {file.name for file in CHART.iterdir()} == set(crd.files())


@pytest.mark.parametrize("version", VERSIONS)
def test_crds_are_valid_for_every_kubernetes_version(version: str) -> None:
    for definition in CRDS:
        kube_schemas.validate(definition, version)


def test_one_fits_into_the_annotation_of_kubectl_apply() -> None:
    assert all(len(text) < 200_000 for text in crd.files().values())


@pytest.mark.parametrize("definition", CRDS, ids=lambda each: each["metadata"]["name"])
def test_schemas_are_structural(definition: dict[str, Any]) -> None:
    for path, node in walk(schema(definition)):
        assert not _UNSTRUCTURAL & node.keys(), path
        is_free = node.get("x-kubernetes-int-or-string")
        assert is_free or node["type"] in ("object", "array", "string", "integer", "boolean"), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("additionalProperties") is not False, path
        assert node.get("default", ...) is not None, path
        if node.get("type") == "object" and "properties" not in node:
            is_open = node.get("x-kubernetes-preserve-unknown-fields")
            assert is_open or "additionalProperties" in node or path == ".metadata", path


@pytest.mark.parametrize("definition", CRDS, ids=lambda each: each["metadata"]["name"])
def test_every_value_is_bounded_so_that_rules_are_cheap(definition: dict[str, Any]) -> None:
    for path, node in walk(schema(definition)["properties"]["spec"]):
        match node.get("type"):
            case "string":
                assert "maxLength" in node or "enum" in node, path
            case "array":
                assert "maxItems" in node, path
            case "object" if "additionalProperties" in node:
                assert "maxProperties" in node, path
            case "integer":
                assert {"minimum", "maximum"} <= node.keys(), path


def test_every_field_has_a_description() -> None:
    for definition in CRDS:
        for path, node in walk(schema(definition)["properties"]["spec"]):
            if not path.endswith("]"):
                assert node.get("description"), path


def test_defaults_are_valid_before_nested_defaults_are_filled_in() -> None:
    for definition in CRDS:
        for path, node in walk(schema(definition)):
            if "default" in node:
                jsonschema.validate(node["default"], node)
                for rule in rules(node):
                    assert "oldSelf" in rule["rule"] or holds(rule, node["default"]), path


def test_kubectl_scale_finds_its_fields() -> None:
    [version] = CRDS[0]["spec"]["versions"]
    paths = dict(walk(schema(CRDS[0])))
    scale = version["subresources"]["scale"]
    assert paths[scale["specReplicasPath"]]["type"] == "integer"
    assert paths[scale["statusReplicasPath"]]["type"] == "integer"
    assert paths[scale["labelSelectorPath"]]["type"] == "string"
    # Without a default, `kubectl scale` and an HPA would see no replicas.
    assert paths[".spec.executor"]["default"] == {}
    assert paths[".spec.executor.replicas"]["default"] == 2


def test_columns_show_fields_that_exist() -> None:
    for definition in CRDS:
        [version] = definition["spec"]["versions"]
        paths = {path for path, _ in walk(schema(definition))}
        for column in version["additionalPrinterColumns"]:
            path = column["jsonPath"]
            assert path in paths or path.startswith((".metadata.", ".status.conditions[?")), path


def test_schema_and_models_accept_the_same_resources() -> None:
    resource = {"spec": {"manifest": MANIFEST, **EVERYTHING}}
    jsonschema.validate(resource, schema(CRDS[0]))
    assert not parsing.cluster("demo", resource["spec"]).problems


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_examples_are_valid(file: Path) -> None:
    resource = yaml.safe_load(file.read_text())
    if resource["kind"] == "CarawayLimits":
        jsonschema.validate(resource, schema(CRDS[1]))
        assert not parsing.limits(resource["spec"]).problems
        return
    jsonschema.validate(resource, schema(CRDS[0]))
    parsed = parsing.cluster(resource["metadata"]["name"], resource["spec"])
    assert parsed.spec is not None, parsed.problems
    assert manifest_checks.check_inline(parsed.spec).problems == ()


@pytest.mark.parametrize(
    "spec",
    [
        {"executor": {"replicas": "3"}},
        {"executor": {"replicas": -1}},
        {"executor": {"cache": {"size": "big"}}},
        {"secrets": [{"name": "v"}]},
        {"service": {"type": "Ingress"}},
        {"image": {"tag": "not a tag"}},
    ],
)
def test_schema_and_models_reject_the_same_fields(spec: dict[str, Any]) -> None:
    whole = {"manifest": MANIFEST, **spec}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": whole}, schema(CRDS[0]))
    assert parsing.cluster("demo", whole).problems


def test_validation_errors_of_the_api_server_reveal_no_password() -> None:
    """It quotes the value of a field with an invalid pattern, but not of an object."""
    redis = dict(walk(schema(CRDS[0])))[".spec.redis.url"]

    assert "pattern" not in redis and not rules(redis)
    [problem] = parsing.cluster(
        "demo", {"manifest": MANIFEST, "redis": {"url": "redis://user:hidden@host"}}
    ).problems
    assert problem.path == "spec.redis.url" and "hidden" not in problem.message


def test_rules_on_the_name_have_a_field_path() -> None:
    assert {rule["fieldPath"] for rule in rules(schema(CRDS[0]))} == {".metadata.name"}


# CEL rules


def holds(rule: dict[str, str], self: Any, old: Any = None) -> bool:
    context = cel.Context()
    context.add_variable("self", self)
    context.add_variable("oldSelf", old)
    context.add_function("isQuantity", _is_quantity)
    context.add_function("quantity", lambda text: text)
    context.add_function("compareTo", _compare)
    answer = cel.evaluate(rule["rule"], context)
    assert isinstance(answer, bool)
    return answer


def _is_quantity(text: str) -> bool:
    try:
        quantities.number(text)
    except ValueError:
        return False
    return True


def _compare(text: str, other: str) -> int:
    first, second = quantities.number(text), quantities.number(other)
    return (first > second) - (first < second)


def broken(path: str, self: Any, old: Any = None) -> list[str]:
    """Return the messages of the broken rules at a path."""
    node = dict(walk(schema(CRDS[0])))[path]
    found = [rule for rule in rules(node) if old is not None or "oldSelf" not in rule["rule"]]
    return [rule["message"] for rule in found if not holds(rule, self, old)]


@pytest.mark.parametrize("name", ["a", "a" * 40, "head", "demo-heads"])
def test_valid_names(name: str) -> None:
    assert not broken("", {"metadata": {"name": name}})


@pytest.mark.parametrize("name", ["a" * 41, "a.b", "1a", "demo-head", "x-token"])
def test_names_are_invalid_for_the_crd_and_the_operator_alike(name: str) -> None:
    assert broken("", {"metadata": {"name": name}})
    assert parsing.cluster(name, {"manifest": MANIFEST}).problems


@pytest.mark.parametrize(
    ("path", "value", "is_right"),
    [
        (".spec", {"manifest": {}}, True),
        (".spec", {"manifestFrom": {}}, True),
        (".spec", {}, False),
        (".spec", {"manifest": {}, "manifestFrom": {}}, False),
        (".spec.executor", {"minReplicas": 1, "maxReplicas": 1}, True),
        (".spec.executor", {"maxReplicas": 3}, True),
        (".spec.executor", {"minReplicas": 3, "maxReplicas": 2}, False),
        (".spec.executor", {"minReplicas": 3}, False),
        (
            ".spec.executor",
            {"drainTimeoutSeconds": 9, "terminationGracePeriodSeconds": 10},
            True,
        ),
        (
            ".spec.executor",
            {"drainTimeoutSeconds": 10, "terminationGracePeriodSeconds": 10},
            False,
        ),
        (".spec.redis", {"url": "redis://r"}, True),
        (".spec.redis", {"url": "redis://r", "urlFrom": {}}, False),
        (".spec.redis", {}, False),
        (".spec.redis", {"url": "redis://user:password@host"}, False),
        (".spec.redis", {"url": "http://r"}, False),
    ],
)
def test_rules_between_fields(path: str, value: dict[str, Any], is_right: bool) -> None:
    assert (broken(path, value) == []) is is_right


@pytest.mark.parametrize("path", [".spec.executor.cache", ".spec.state.storage"])
@pytest.mark.parametrize(
    ("old", "new", "is_right"),
    [
        ({"size": "5Gi"}, {"size": "5120Mi"}, True),
        ({"size": "5Gi"}, {"size": "6Gi"}, True),
        ({"size": "5Gi"}, {"size": "4Gi"}, False),
        ({"enabled": True}, {"enabled": False}, False),
        ({"storageClass": "a"}, {"storageClass": "a"}, True),
        ({"storageClass": "a"}, {"storageClass": "b"}, False),
        ({"storageClass": "a"}, {}, False),
        ({}, {"storageClass": "a"}, False),
        ({"retain": True}, {"retain": False}, True),
        ({}, {}, True),
    ],
)
def test_volumes_can_only_grow(
    path: str, old: dict[str, Any], new: dict[str, Any], is_right: bool
) -> None:
    assert (broken(path, new, old) == []) is is_right


def test_limits_of_zero_are_rejected_by_rule_and_model() -> None:
    fields = schema(CRDS[1])["properties"]["spec"]["properties"]
    for name in ("api_rps", "request_timeout_secs", "sql_query_timeout_secs"):
        [rule] = rules(fields[name])
        assert [holds(rule, value) for value in (-1, 0, 1)] == [True, False, True]
        assert [not parsing.limits({name: value}).problems for value in (-1, 0, 1)] == [
            True,
            False,
            True,
        ]
