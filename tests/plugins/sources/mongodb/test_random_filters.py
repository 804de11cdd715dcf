"""Random statements over a collection have the answers of the engine over the same rows."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from caraway_plugins.sources.mongodb.source import MongodbSource
from tests.kit import mixed_documents
from tests.kit.mixed_documents import Compared
from tests.kit.mongo_server import MongoServer

_PATIENT = settings(deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
SCHEMA = pa.schema([each for each in mixed_documents.SCHEMA if each.name != "price"])
"""FerretDB has no decimals."""


@pytest.fixture(scope="module")
def compared(mongodb: MongoServer) -> Compared:
    documents = mixed_documents.documents(60)
    mongodb.put("mixed", [{k: v for k, v in each.items() if k != "price"} for each in documents])
    expected = mixed_documents.table_of(documents, SCHEMA)
    inferred = MongodbSource().resolve(mongodb.request("mixed"))
    assert all(inferred.schema.field(each.name) == each for each in SCHEMA)
    return mixed_documents.compared(inferred, expected)


@settings(_PATIENT, max_examples=150)
@given(sql=mixed_documents.statements(SCHEMA))
def test_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(_PATIENT, max_examples=5_000)
@given(sql=mixed_documents.statements(SCHEMA))
def test_many_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)
