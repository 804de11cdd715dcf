import logging

import pytest

from caraway_kube.api.kinds import CONFIG_MAP, Object, ObjectRef
from caraway_operator.watching.limits_config_maps import LimitsConfigMaps
from caraway_operator.watching.resource_cache import ResourceCache


def config_map(name: str, text: str, namespace: str = "web") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"limits.yaml": text}}


def replicas(resources: ResourceCache) -> int | None:
    found = resources.limits_of("web", None)
    return found.replicas if found else None


def test_limits_of_a_config_map_apply_until_it_is_deleted() -> None:
    resources = ResourceCache()
    changed: list[str] = []
    maps = LimitsConfigMaps(resources, changed.append)

    maps.put(config_map("plan", "replicas: 3"))
    assert replicas(resources) == 3
    maps.drop(ObjectRef("ConfigMap", "web", "plan"))

    assert replicas(resources) is None
    assert changed == ["web", "web"]


def test_a_list_removes_missing_config_maps_and_keeps_resources() -> None:
    resources = ResourceCache(limits={("web", "plan"): {"metadata": {}, "spec": {"replicas": 9}}})
    maps = LimitsConfigMaps(resources, lambda _namespace: None)
    maps.put(config_map("gone", "replicas: 1"))

    maps.replace(CONFIG_MAP, None, [config_map("kept", '{"replicas": 5}')])

    assert replicas(resources) == 5
    assert ("web", "plan") in resources.limits


def test_a_malformed_config_map_keeps_its_previous_limits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    resources = ResourceCache()
    maps = LimitsConfigMaps(resources, lambda _namespace: None)
    maps.put(config_map("plan", "replicas: 3"))

    maps.put(config_map("plan", "{replicas: "))

    assert replicas(resources) == 3
    assert "cannot read the limits" in caplog.text


@pytest.mark.parametrize("text", ["", "[1]", "just text"])
def test_a_config_map_without_fields_sets_no_limits(text: str) -> None:
    resources = ResourceCache()
    LimitsConfigMaps(resources, lambda _namespace: None).put(config_map("plan", text))

    assert replicas(resources) in (None, -1)
