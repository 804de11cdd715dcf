"""The sections of search of datasets, views and columns."""

from dataclasses import dataclass, field

from caraway_core.manifest.sections import Section, Text, TextList, Texts, key
from caraway_core.manifest.values.search_columns import Chunking


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEmbedding(Section):
    from_: Text = key("from")
    row_id: TextList = ()
    chunking: Chunking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFullTextSearch(Section):
    enabled: bool = True
    row_id: TextList = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTextSearch(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = field(default_factory=dict)
