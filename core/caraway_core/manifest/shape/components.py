"""Sections of components that this build rejects; only their shape is checked."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.documents import unsupported
from caraway_core.manifest.models import ModelFileType
from caraway_core.manifest.shape.acceleration import AccelerationSection
from caraway_core.manifest.shape.base import (
    Anything,
    Count,
    CountOrNone,
    Section,
    Size,
    Text,
    TextList,
    Texts,
    Written,
)
from caraway_core.manifest.texts import names


def _check_provider(text: str) -> str:
    unsupported.check_provider(names.split_provider(text).connector)
    return text


def _check_catalog_origin(text: str) -> str:
    unsupported.check_catalog_connector(names.split_origin(text).connector)
    return text


def _check_patterns(patterns: list[str]) -> list[str]:
    for each in patterns:
        if "." not in each:
            raise ValueError(f"'{each}' has no schema; write '{each}.*', or '*.{each}' for tables")
    return patterns


class CatalogSection(Section):
    from_: Annotated[Text, AfterValidator(_check_catalog_origin)] = Field(alias="from")
    name: Annotated[Written, AfterValidator(names.catalog)]
    description: str | None = None
    include: Annotated[TextList, AfterValidator(_check_patterns)] = Field(default_factory=list)
    access: Literal["read", "read_write", "read_write_create"] = "read"
    dataset_params: Texts = Field(default_factory=dict)
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    acceleration: AccelerationSection | None = None
    depends_on: TextList = Field([], alias="dependsOn")


class Component(Section):
    """The common keys of models, tools and similar components."""

    from_: Text = Field(alias="from")
    name: Text
    description: str | None = None
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    depends_on: TextList = Field([], alias="dependsOn")


ModelName = Annotated[Written, AfterValidator(names.component)]


class ModelFileSection(Section):
    path: Text
    name: str | None = None
    type: ModelFileType | None = None


class ModelResourcesSection(Section):
    cpu: Count | None = None
    memory_bytes: Size | None = Field(None, alias="memory")
    gpu: CountOrNone = 0
    copies: Count = 1


class ModelSection(Section):
    from_: Annotated[Text, AfterValidator(_check_provider)] = Field(alias="from")
    name: ModelName
    description: str | None = None
    metadata: Anything = Field(default_factory=dict)
    params: Texts = Field(default_factory=dict)
    files: list[ModelFileSection] = Field(default_factory=list)
    datasets: Annotated[TextList, AfterValidator(names.canonical_all)] = Field(default_factory=list)
    resources: ModelResourcesSection | None = None
    depends_on: TextList = Field([], alias="dependsOn")


class SearchEngine(Component):
    pass


class Evaluation(Section):
    name: Text
    description: str | None = None
    dataset: Text | None = None
    scorers: TextList = Field(default_factory=list)
    depends_on: TextList = Field([], alias="dependsOn")
