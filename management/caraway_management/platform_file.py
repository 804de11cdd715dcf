"""Reads the file with the offer of an installation: regions, clusters, images, git."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from caraway_core.errors import CarawayError
from caraway_management.domain import platform
from caraway_management.domain.platform import Platform
from caraway_management.domain.repositories import SCHEMES

_MOST_BYTES = 1024 * 1024
_Text = Annotated[str, Field(min_length=1, max_length=255)]
_Labels = dict[_Text, Annotated[str, Field(max_length=63)]]


def _checked_place(url: str) -> str:
    if url.split("://")[0] not in SCHEMES or not url.endswith("/"):
        raise ValueError(f"must begin with one of {', '.join(SCHEMES)} and end with '/'")
    return url


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Region(_Section):
    name: _Text
    region: str = ""
    provider: str = ""
    provider_name: str = Field("", alias="providerName")
    cname: str = ""
    is_default: bool = Field(False, alias="isDefault")
    is_disabled: bool = Field(False, alias="disabled")
    env: str = "prod"
    node_selector: _Labels = Field({}, alias="nodeSelector")

    def value(self) -> platform.Region:
        return platform.Region(**{**self.model_dump(), "region": self.region or self.name})


class _Cluster(_Section):
    name: _Text = Field(alias="cluster_name")
    region: _Text
    cloud_provider: str = ""
    endpoint: str = ""
    is_deployable: bool = Field(True, alias="deployable")
    organizations: list[str] = []
    created_at: datetime | None = None
    updated_at: datetime | None = None
    node_selector: _Labels = Field({}, alias="nodeSelector")

    def value(self) -> platform.Cluster:
        values = {**self.model_dump(), "organizations": tuple(self.organizations)}
        return platform.Cluster(**values)


class _Image(_Section):
    name: _Text
    tag: _Text
    channel: Literal["stable", "preview", "nightly", "internal"] = "stable"

    def value(self) -> platform.Image:
        return platform.Image(**self.model_dump())


class _File(_Section):
    regions: list[_Region] | None = None
    clusters: list[_Cluster] = []
    images: list[_Image] = []
    git: list[Annotated[str, AfterValidator(_checked_place)]] = []


def read(path: Path) -> Platform:
    """Return what the file says.

    Raises:
        CarawayError: it cannot be read, or is wrong.
    """
    try:
        with path.open("rb") as file:
            content: Any = yaml.safe_load(file.read(_MOST_BYTES))
        found = _File.model_validate(content or {})
    except OSError as exc:
        raise CarawayError(f"cannot read '{path}': {exc.strerror}") from exc
    except (yaml.YAMLError, RecursionError) as exc:
        raise CarawayError(f"'{path}' is not YAML: {exc}") from exc
    except ValidationError as exc:
        problem = exc.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise CarawayError(f"'{path}': {where}: {problem['msg']}") from exc
    regions = Platform().regions
    if found.regions is not None:
        regions = tuple(each.value() for each in found.regions)
    return Platform(
        regions,
        tuple(each.value() for each in found.clusters),
        tuple(each.value() for each in found.images),
        tuple(found.git),
    )
