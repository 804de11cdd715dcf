import logging

import pytest

from caraway_operator.known import Known
from caraway_operator.kube.kinds import CONFIG_MAP, Object, Ref
from caraway_operator.limit_maps import LimitMaps


def config_map(name: str, text: str, namespace: str = "web") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"limits.yaml": text}}


def replicas(known: Known) -> int | None:
    found = known.limits_of("web", None)
    return found.replicas if found else None


def test_limits_of_a_config_map_apply_and_go_with_it() -> None:
    known = Known()
    changed: list[str] = []
    maps = LimitMaps(known, changed.append)

    maps.put(config_map("plan", "replicas: 3"))
    assert replicas(known) == 3
    maps.drop(Ref("ConfigMap", "web", "plan"))

    assert replicas(known) is None
    assert changed == ["web", "web"]


def test_a_listing_says_which_are_gone_and_leaves_resources_alone() -> None:
    known = Known(limits={("web", "plan"): {"metadata": {}, "spec": {"replicas": 9}}})
    maps = LimitMaps(known, lambda _namespace: None)
    maps.put(config_map("gone", "replicas: 1"))

    maps.replace(CONFIG_MAP, None, [config_map("kept", '{"replicas": 5}')])

    assert replicas(known) == 5
    assert ("web", "plan") in known.limits


def test_what_cannot_be_read_keeps_what_was_said_before(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    known = Known()
    maps = LimitMaps(known, lambda _namespace: None)
    maps.put(config_map("plan", "replicas: 3"))

    maps.put(config_map("plan", "{replicas: "))

    assert replicas(known) == 3
    assert "limits cannot be read" in caplog.text


@pytest.mark.parametrize("text", ["", "[1]", "just text"])
def test_what_holds_no_fields_limits_nothing_wrongly(text: str) -> None:
    known = Known()
    LimitMaps(known, lambda _namespace: None).put(config_map("plan", text))

    assert replicas(known) in (None, -1)
