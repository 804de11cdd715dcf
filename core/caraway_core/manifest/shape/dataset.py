"""The sections of datasets and views, and the sections inside them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.documents import unsupported
from caraway_core.manifest.shape.acceleration import AccelerationSection
from caraway_core.manifest.shape.base import (
    Anything,
    Section,
    Text,
    TextList,
    Texts,
    Written,
)
from caraway_core.manifest.shape.search import (
    ColumnEmbedding,
    ColumnFullTextSearch,
    FullTextSearch,
    Vectors,
)
from caraway_core.manifest.texts import column_types, names

Access = Literal["read", "read_write"]
ReadyState = Literal["on_load", "on_registration"]


def _check_origin(text: str) -> str:
    unsupported.check_connector(names.split_origin(text).connector)
    return text


def _check_type(text: str) -> str:
    column_types.arrow_type(text)
    return text


TableName = Annotated[Written, AfterValidator(names.canonical)]


class ColumnSection(Section):
    name: Annotated[Written, Field(min_length=1)]
    type: Annotated[str, AfterValidator(_check_type)] | None = None
    description: str | None = None
    metadata: Anything = Field(default_factory=dict)
    embeddings: list[ColumnEmbedding] = Field(default_factory=list)
    full_text_search: ColumnFullTextSearch | None = None


class Replication(Section):
    enabled: bool = False


class DatasetSection(Section):
    from_: Annotated[Text, AfterValidator(_check_origin)] = Field(alias="from")
    name: TableName
    description: str | None = None
    metadata: Anything = Field(default_factory=dict)
    access: Access = "read"
    params: Texts = Field(default_factory=dict)
    columns: list[ColumnSection] = Field(default_factory=list)
    time_column: Text | None = None
    time_format: (
        Literal["timestamp", "timestamptz", "unix_seconds", "unix_millis", "ISO8601", "date"] | None
    ) = None
    time_partition_column: Text | None = None
    time_partition_format: Text | None = None
    ready_state: ReadyState | None = None
    unsupported_type_action: Literal["error", "warn", "ignore", "string"] = "error"
    check_availability: Literal["auto", "disabled"] = "auto"
    on_schema_change: Text | None = None
    metrics: Anything | list[Anything] | None = None
    vectors: Vectors | None = None
    full_text_search: FullTextSearch | None = None
    depends_on: TextList = Field([], alias="dependsOn")
    replication: Replication | None = None
    acceleration: AccelerationSection | None = None


class ViewSection(Section):
    name: TableName
    description: str | None = None
    sql: Text | None = None
    sql_ref: Text | None = None
    metadata: Anything = Field(default_factory=dict)
    columns: list[ColumnSection] = Field(default_factory=list)
    vectors: Vectors | None = None
    full_text_search: FullTextSearch | None = None
    acceleration: AccelerationSection | None = None
