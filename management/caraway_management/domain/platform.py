"""The regions, clusters and images that projects may choose, and the rules of the choice."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from caraway_management.domain import refusals

CHANNELS = ("stable", "preview", "nightly", "internal")
NODE_SELECTOR = "node_selector"
"""The setting of a deployment with the labels of its nodes. No request sets it."""


@dataclass(frozen=True, slots=True)
class Region:
    """A place where projects run."""

    name: str
    region: str
    provider: str = ""
    provider_name: str = ""
    cname: str = ""
    is_default: bool = False
    is_disabled: bool = False
    env: str = "prod"
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """The labels of the nodes that run its projects."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that an installation offers."""

    name: str
    region: str
    cloud_provider: str = ""
    endpoint: str = ""
    is_deployable: bool = True
    organizations: tuple[str, ...] = ()
    """The handles of the organizations that may use it; all of them if empty."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """The labels of its nodes, in addition to those of its region."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the runtime."""

    name: str
    tag: str
    channel: str = "stable"


@dataclass(frozen=True, slots=True)
class Platform:
    """The places and images that an installation offers its projects."""

    regions: tuple[Region, ...] = (
        Region("local", "local", "local", "This installation", "", True),
    )
    clusters: tuple[Cluster, ...] = ()
    images: tuple[Image, ...] = ()
    git: tuple[str, ...] = ()
    """The beginnings of the URLs of repositories that projects may be connected to."""

    def find_cluster(self, name: str, org: str) -> Cluster | None:
        """Return a cluster that an organization may use."""
        return next((each for each in self.clusters_of(org) if each.name == name), None)

    def clusters_of(self, org: str) -> list[Cluster]:
        """Return the clusters that an organization may use."""
        return [
            each
            for each in self.clusters
            if not each.organizations
            or org.lower() in {name.lower() for name in each.organizations}
        ]

    def check_placement(
        self, region: str | None, cluster_name: str | None, org: str
    ) -> tuple[str | None, str | None]:
        """Return the region and cluster of a project; with neither it is standalone.

        Raises:
            RefusedError: they do not exist, cannot be used, or do not agree.
        """
        if cluster_name is None:
            return self._check_region(region), None
        cluster = self.find_cluster(cluster_name, org)
        if cluster is None:
            raise _refused("cluster_name", f"Cluster '{cluster_name}' not found")
        if not cluster.is_deployable:
            raise _refused("cluster_name", f"'{cluster_name}' is not a deployable cluster")
        if region is not None and region != cluster.region:
            raise _refused(
                "region", f"region '{region}' does not match cluster region '{cluster.region}'"
            )
        return cluster.region, cluster.name

    def settings_of(
        self, config: Mapping[str, object], region: str | None, cluster_name: str | None
    ) -> dict[str, object]:
        """Return the settings of a deployment, with its image and the labels of its nodes.

        Without a tag it is the newest image of the channel and version. An installation that says
        nothing about images runs its own.

        Raises:
            RefusedError: there is no such image.
        """
        labels = {
            **next((each.node_selector for each in self.regions if each.name == region), {}),
            **next((each.node_selector for each in self.clusters if each.name == cluster_name), {}),
        }
        return {**self._with_image(config), **({NODE_SELECTOR: labels} if labels else {})}

    def _with_image(self, config: Mapping[str, Any]) -> dict[str, object]:
        version, channel = config.get("version"), config.get("update_channel", CHANNELS[0])
        if config.get("image_tag") or not self.images:
            return dict(config)
        fitting = (
            each.tag
            for each in self.images
            if each.channel == channel
            and config.get("image") in (None, each.name)
            and (version is None or _is_of(each.tag, version))
        )
        if (tag := next(fitting, None)) is not None:
            return {**config, "image_tag": tag}
        if version is None and channel == CHANNELS[0]:
            return dict(config)
        field = "update_channel" if version is None else "version"
        raise refusals.invalid_field(
            field,
            f"there is no image of {channel} {version or ''}".rstrip()
            + "; see GET /v1/container-images",
            "unknown_image_tag",
        )

    def region_of(self, cname: str) -> str:
        """Return the name of the region with a `cname`.

        Raises:
            RefusedError: there is none.
        """
        found = next(
            (each.name for each in self.regions if each.cname and each.cname == cname), None
        )
        if found is None:
            raise _refused("cname", f"no region has the cname '{cname}'")
        return found

    def _check_region(self, name: str | None) -> str | None:
        if name is None:
            return None
        region = next((each for each in self.regions if name in (each.name, each.region)), None)
        if region is None:
            raise _refused("region", f"region '{name}' not found")
        if region.is_disabled:
            raise _refused("region", f"region '{name}' takes no projects")
        return region.name


def _is_of(tag: str, version: str) -> bool:
    """Return whether a tag such as v2.1.0-rc.1 is of a version such as 2.1 or 2.x."""
    wanted = version.removesuffix(".x").split(".")
    return re.split(r"[.+-]", tag.removeprefix("v"))[: len(wanted)] == wanted


def _refused(field: str, message: str) -> refusals.RefusedError:
    return refusals.invalid(message, fields={field: [message]})
