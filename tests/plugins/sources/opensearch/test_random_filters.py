"""Random statements over an index have the answers of the engine over the same rows."""

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from caraway_core.loading import registry
from tests.kit import mixed_documents
from tests.kit.mixed_documents import Compared
from tests.kit.search_server import SearchServer

_PATIENT = settings(deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
PROPERTIES: Mapping[str, Any] = {
    "pk": {"type": "keyword"},
    "sk": {"type": "integer"},
    "name": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 1}}},
    "qty": {"type": "long"},
    "price": {"type": "double"},
    "is_on": {"type": "boolean", "null_value": True},
    "raw": {"type": "binary"},
    "mixed": {"type": "object", "enabled": False},
    "tags": {"type": "keyword"},
    "size": {"type": "keyword", "normalizer": "lowercase"},
}


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if name == "size" and value == "m":
        return "S"  # As the normalizer has it, this is the other size.
    return str(value) if name == "price" and value is not None else value


@pytest.fixture(scope="module")
def compared(server: SearchServer) -> Compared:
    documents = mixed_documents.documents(60)
    stored = [{k: _stored(k, v) for k, v in each.items()} for each in documents]
    server.put("mixed", stored, PROPERTIES, shards=2)
    sizes = [
        {**each, "size": _stored("size", each["size"])} if "size" in each else each
        for each in documents
    ]
    expected = mixed_documents.table_of(sizes)
    source = registry.SOURCES.load(server.product)()
    declared = source.resolve(server.request("mixed", *mixed_documents.SCHEMA))
    return mixed_documents.compared(declared, expected)


def test_columns_of_the_mapping(server: SearchServer, compared: Compared) -> None:
    found = registry.SOURCES.load(server.product)().resolve(server.request("mixed")).schema
    others = {"sk": pa.int32(), "price": pa.float64()}
    for each in mixed_documents.SCHEMA:
        assert found.field(each.name).type == others.get(each.name, each.type)


@settings(_PATIENT, max_examples=150)
@given(sql=mixed_documents.statements())
def test_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(_PATIENT, max_examples=5_000)
@given(sql=mixed_documents.statements())
def test_many_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)
