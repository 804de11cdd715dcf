"""The bodies of requests for projects."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, StrictFloat, StrictInt, StrictStr

from caraway_management.api.bodies import Body
from caraway_management.domain import names

Amount = StrictStr | StrictInt | StrictFloat
ProjectName = Annotated[
    str,
    Field(
        description="4 to 38 letters, digits or '-'. Unique in the organization, without case.",
        json_schema_extra={"pattern": names.PROJECT_PATTERN},
    ),
]
_Manifest = Annotated[
    str | dict[str, Any] | None,
    Field(
        validation_alias=AliasChoices("manifest", "spicepod"),
        description="The manifest, as YAML text or as an object. `spicepod` is another name.",
    ),
]


class Resources(Body):
    """CPU, memory and storage of a container, in the notation of Kubernetes."""

    limits: dict[str, Amount] | None = None
    requests: dict[str, Amount] | None = None


class Executor(Body):
    """The executors of a project that runs as a cluster."""

    replicas: int | None = None
    resources: Resources | None = None
    storage_size_gb: int | None = None


class Settings(Body):
    """The settings of a project. Those left out stay as they are; null sets the default."""

    description: str | None = None
    visibility: Literal["public", "private"] | None = None
    production_branch: str | None = None
    tags: dict[str, str] | None = None
    manifest: _Manifest = None
    registry: str | None = None
    image: str | None = None
    image_tag: str | None = None
    update_channel: Literal["stable", "preview", "nightly", "internal"] | None = None
    version: str | None = Field(None, description="A version, or a range such as `2.x`.")
    replicas: int | None = Field(None, description="1 to 10, and at most what the plan allows.")
    node_group: str | None = None
    region: str | None = Field(None, description="A name of `GET /v1/regions`.")
    cluster_name: str | None = Field(None, description="A name of `GET /v1/clusters`.")
    storage_size_gb: int | None = None
    resources: Resources | None = None
    executor: Executor | None = None

    def given(self) -> dict[str, Any]:
        """Return the settings that the body has, also those that are null."""
        return self.model_dump(include=set(Settings.model_fields), exclude_unset=True)


class NewProject(Settings):
    """A new project. Without region and cluster it is standalone."""

    name: ProjectName
    cname: str | None = Field(None, description="The `cname` of a region, in place of its name.")
    default_alerts: bool | None = Field(
        None,
        description="true adds monitors of storage, instances, memory and refreshes, false none; "
        "without it, that of storage. Which they are is ours.",
    )


class ChangedProject(Settings):
    """Changes of a project."""

    revision: int | None = Field(
        None,
        description="The revision that was read; another one is refused with 409. Only in Caraway.",
    )
