from dataclasses import replace
from typing import Any

import pytest

from caraway_management.domain import configs
from caraway_management.domain.configs import Allowance
from caraway_management.domain.plans import PLANS, ResourceLimits
from caraway_management.domain.refusals import RefusedError

ENTERPRISE = Allowance.from_plan("enterprise", PLANS["enterprise"])
PRO = Allowance.from_plan("pro", PLANS["pro"])
COMMUNITY = Allowance.from_plan("community", PLANS["community"])
SMALL = Allowance.from_plan("small", replace(PLANS["pro"], resources=ResourceLimits(2, 4)))


def _refusal(changes: dict[str, Any], allowance: Allowance = ENTERPRISE) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        configs.merge({}, changes, allowance)
    return caught.value


def test_settings_are_merged_and_null_sets_the_default() -> None:
    config = configs.merge({}, {"replicas": 3, "version": "2.x"}, ENTERPRISE)
    config = configs.merge(config, {"replicas": None, "node_group": "large"}, ENTERPRISE)
    assert config == {"version": "2.x", "node_group": "large"}
    assert configs.show(config)["replicas"] == 1
    assert list(configs.show({})) == list(configs.FIELDS)


def test_quantities_are_kept_in_one_form() -> None:
    resources = {
        "limits": {"cpu": 2, "memory": "4096Mi", "ephemeral-storage": "10Gi"},
        "requests": {"cpu": "1500m", "memory": "1Gi"},
    }
    merged = configs.merge({}, {"resources": resources}, ENTERPRISE)
    assert merged["resources"] == {
        "limits": {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi"},
        "requests": {"cpu": "1500m", "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replicas", 0), ("replicas", 11), ("replicas", -1),
        ("storage_size_gb", 0), ("storage_size_gb", 257),
        ("version", "x"), ("version", "2.x.1"), ("version", "1.2.3.4"), ("version", "2\n"),
        ("image", "Caraway"), ("image", "a b"), ("image", "../a"), ("registry", "a/../b;"),
        ("registry", "-x"), ("node_group", "-a"), ("node_group", "A"), ("image_tag", "a b"),
        ("resources", {"limits": {"gpu": 1}}), ("resources", {"limits": {"cpu": "much"}}),
        ("resources", {"limits": {"cpu": "499m"}}), ("resources", {"limits": {"cpu": 16.5}}),
        ("resources", {"limits": {"cpu": float("nan")}}), ("resources", {"limits": {"cpu": -1}}),
        ("resources", {"limits": {"memory": "999M"}}),
        ("resources", {"limits": {"memory": "129Gi"}}),
        ("resources", {"limits": {"ephemeral-storage": "257Gi"}}),
        ("resources", {"limits": {"cpu": 1}, "requests": {"cpu": 2}}),
        ("executor", {"replicas": 51}), ("executor", {"replicas": -1}),
        ("executor", {"storage_size_gb": 300}),
    ],
)  # fmt: skip
def test_settings_out_of_their_range_are_refused(name: str, value: Any) -> None:
    refused = _refusal({name: value})
    assert refused.status == 400
    assert next(iter(refused.fields)).startswith(name)


@pytest.mark.parametrize(
    ("changes", "allowance", "word"),
    [
        ({"replicas": 2}, COMMUNITY, "replicas"),
        ({"replicas": 6}, PRO, "replicas"),
        ({"executor": {"replicas": 6}}, PRO, "executor.replicas"),
        ({"resources": {"limits": {"cpu": 1}}}, COMMUNITY, "no private compute"),
        ({"executor": {"resources": {"limits": {"cpu": 1}}}}, COMMUNITY, "no private compute"),
        ({"resources": {"limits": {"cpu": "2001m"}}}, SMALL, "2 CPUs"),
        ({"resources": {"limits": {"memory": "5Gi"}}}, SMALL, "4 GiB"),
        ({"executor": {"resources": {"requests": {"memory": "5Gi"}}}}, SMALL, "4 GiB"),
    ],
)
def test_what_the_plan_does_not_have_is_refused(
    changes: dict[str, Any], allowance: Allowance, word: str
) -> None:
    refused = _refusal(changes, allowance)
    assert (refused.status, refused.code) == (403, "plan_limit")
    assert word in refused.message


def test_instances_with_executors_are_bounded() -> None:
    assert _refusal({"replicas": 10, "executor": {"replicas": 41}}).status in (400, 403)


def test_what_a_smaller_plan_lacks_stays_until_it_is_changed() -> None:
    config = configs.merge({}, {"replicas": 5}, PRO)
    kept = configs.merge(config, {"version": "2.1"}, COMMUNITY)
    assert kept == {"replicas": 5, "version": "2.1"}


def test_tags_of_images_need_the_enterprise_plan() -> None:
    refused = _refusal({"image_tag": "1.2.3"}, PRO)
    assert (refused.status, refused.code) == (403, "image_tag_requires_enterprise")
    assert configs.merge({"image_tag": "1.2.3"}, {"image_tag": None}, PRO) == {}


@pytest.mark.parametrize("tag", ["latest", "1.2.3-rc.1", "nightly", "2.x", "v"])
def test_the_stable_channel_has_stable_tags(tag: str) -> None:
    refused = _refusal({"image_tag": tag})
    assert (refused.status, refused.code) == (400, "invalid_stable_image_tag")
    preview = configs.merge({}, {"image_tag": tag, "update_channel": "preview"}, ENTERPRISE)
    assert preview["image_tag"] == tag
    with pytest.raises(RefusedError) as caught:
        configs.merge(preview, {"update_channel": None}, ENTERPRISE)
    assert caught.value.code == "invalid_stable_image_tag"


@pytest.mark.parametrize("tag", ["1.2.3", "v2.0.0", "2.1"])
def test_stable_tags_are_versions(tag: str) -> None:
    assert configs.merge({}, {"image_tag": tag}, ENTERPRISE)["image_tag"] == tag
