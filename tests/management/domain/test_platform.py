from collections.abc import Mapping
from typing import Any

import pytest

from caraway_management.domain.platform import NODE_SELECTOR, Cluster, Image, Platform, Region
from caraway_management.domain.refusals import RefusedError

PLATFORM = Platform(
    regions=(
        Region("eu", "eu-west-1", cname="eu.example", node_selector={"zone": "eu", "tier": "a"}),
        Region("us", "us-east-1", is_disabled=True),
    ),
    clusters=(
        Cluster("shared", "eu", node_selector={"tier": "b"}),
        Cluster("acme-only", "eu", organizations=("Acme",)),
        Cluster("old", "eu", is_deployable=False),
    ),
    images=(
        Image("caraway", "v2.1.0"),
        Image("caraway", "v2.0.4"),
        Image("caraway", "v3.0.0-rc.1", "preview"),
    ),
)


def test_clusters_are_those_that_an_organization_may_use() -> None:
    assert [each.name for each in PLATFORM.clusters_of("acme")] == ["shared", "acme-only", "old"]
    assert [each.name for each in PLATFORM.clusters_of("other")] == ["shared", "old"]
    assert PLATFORM.find_cluster("acme-only", "other") is None


@pytest.mark.parametrize(
    ("region", "cluster", "placement"),
    [
        (None, None, (None, None)),
        ("eu-west-1", None, ("eu", None)),
        (None, "shared", ("eu", "shared")),
        ("eu", "shared", ("eu", "shared")),
    ],
)
def test_placements(region: str | None, cluster: str | None, placement: tuple[str, str]) -> None:
    assert PLATFORM.check_placement(region, cluster, "acme") == placement


@pytest.mark.parametrize(
    ("region", "cluster", "field", "words"),
    [
        ("mars", None, "region", "not found"),
        ("us", None, "region", "takes no projects"),
        (None, "none", "cluster_name", "not found"),
        (None, "old", "cluster_name", "not a deployable"),
        ("us", "shared", "region", "does not match"),
    ],
)
def test_placements_that_are_refused(
    region: str | None, cluster: str | None, field: str, words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        PLATFORM.check_placement(region, cluster, "acme")
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize(
    ("config", "tag"),
    [
        ({}, "v2.1.0"),
        ({"version": "2.0"}, "v2.0.4"),
        ({"version": "2.x"}, "v2.1.0"),
        ({"update_channel": "preview"}, "v3.0.0-rc.1"),
        ({"image_tag": "mine"}, "mine"),
    ],
)
def test_a_deployment_gets_the_newest_fitting_image(config: Mapping[str, Any], tag: str) -> None:
    settings = PLATFORM.settings_of(config, "eu", "shared")
    assert settings["image_tag"] == tag
    assert settings[NODE_SELECTOR] == {"zone": "eu", "tier": "b"}


def test_an_installation_without_images_runs_its_own() -> None:
    assert Platform().settings_of({"version": "2.0"}, None, None) == {"version": "2.0"}
    assert Platform(images=(Image("x", "1", "nightly"),)).settings_of({}, None, None) == {}


@pytest.mark.parametrize(
    ("config", "field"),
    [({"version": "9"}, "version"), ({"update_channel": "nightly"}, "update_channel")],
)
def test_images_that_there_are_none_of(config: Mapping[str, Any], field: str) -> None:
    with pytest.raises(RefusedError, match="there is no image") as refused:
        PLATFORM.settings_of(config, None, None)
    assert list(refused.value.fields) == [field]


def test_regions_by_their_cname() -> None:
    assert PLATFORM.region_of("eu.example") == "eu"
    for cname in ("us.example", ""):
        with pytest.raises(RefusedError, match="no region"):
            PLATFORM.region_of(cname)
