"""Sections of catalogs, and of components that this build rejects."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from caraway_core.manifest.sections import (
    After,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    Written,
    key,
)
from caraway_core.manifest.shape.acceleration import AccelerationSection
from caraway_core.manifest.texts import names, origins


def _check_patterns(patterns: Iterable[str]) -> Iterable[str]:
    for each in patterns:
        if "." not in each:
            raise ValueError(f"'{each}' has no schema; write '{each}.*', or '*.{each}' for tables")
    return patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSection(Section):
    from_: Annotated[Text, After(origins.check_catalog_connector)] = key("from")
    name: Annotated[Written, After(names.catalog)]
    description: str | None = None
    include: Annotated[TextList, After(_check_patterns)] = ()
    access: Literal["read", "read_write", "read_write_create"] = "read"
    dataset_params: Texts = field(default_factory=dict)
    params: Texts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    acceleration: AccelerationSection | None = None
    depends_on: TextList = key("dependsOn", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEngine(Section):
    from_: Text = key("from")
    name: Text
    description: str | None = None
    params: Texts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    depends_on: TextList = key("dependsOn", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Section):
    name: Text
    description: str | None = None
    dataset: Text | None = None
    scorers: TextList = ()
    depends_on: TextList = key("dependsOn", default=())
