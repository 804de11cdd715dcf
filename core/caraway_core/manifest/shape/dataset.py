"""The sections of datasets and views, and the sections inside them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from caraway_core.manifest.sections import (
    After,
    Anything,
    Items,
    Limits,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    Written,
    key,
)
from caraway_core.manifest.shape.acceleration import AccelerationSection
from caraway_core.manifest.shape.search import (
    ColumnEmbedding,
    ColumnFullTextSearch,
    FullTextSearch,
    Vectors,
)
from caraway_core.manifest.texts import column_types, names, origins
from caraway_core.manifest.values.acceleration import TimeFormat
from caraway_core.manifest.values.runtime import ReadyState

Access = Literal["read", "read_write"]


def _check_type(text: str) -> str:
    column_types.arrow_type(text)
    return text


TableName = Annotated[Written, After(names.canonical)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSection(Section):
    name: Annotated[Written, Limits(min_length=1)]
    type: Annotated[str, After(_check_type)] | None = None
    description: str | None = None
    metadata: Metadata = field(default_factory=dict)
    embeddings: Items[ColumnEmbedding] = ()
    full_text_search: ColumnFullTextSearch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication(Section):
    enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSection(Section):
    from_: Annotated[Text, After(origins.check_connector)] = key("from")
    name: TableName
    description: str | None = None
    metadata: Metadata = field(default_factory=dict)
    access: Access = "read"
    params: Texts = field(default_factory=dict)
    columns: Items[ColumnSection] = ()
    time_column: Text | None = None
    time_format: TimeFormat | None = None
    time_partition_column: Text | None = None
    time_partition_format: Text | None = None
    ready_state: ReadyState | None = None
    unsupported_type_action: Literal["error", "warn", "ignore", "string"] = "error"
    check_availability: Literal["auto", "disabled"] = "auto"
    on_schema_change: Text | None = None
    metrics: Anything | Items[Anything] | None = None
    vectors: Vectors | None = None
    full_text_search: FullTextSearch | None = None
    depends_on: TextList = key("dependsOn", default=())
    replication: Replication | None = None
    acceleration: AccelerationSection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSection(Section):
    name: TableName
    description: str | None = None
    sql: Text | None = None
    sql_ref: Text | None = None
    metadata: Metadata = field(default_factory=dict)
    columns: Items[ColumnSection] = ()
    vectors: Vectors | None = None
    full_text_search: FullTextSearch | None = None
    acceleration: AccelerationSection | None = None
