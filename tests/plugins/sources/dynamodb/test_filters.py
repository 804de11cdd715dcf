"""Random statements over a table of DynamoDB have the answers of the engine over the same rows."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from caraway_plugins.sources.dynamodb.source import DynamodbSource
from tests.kit import mixed_documents
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.mixed_documents import Compared

_PATIENT = settings(
    deadline=None,
    phases=[Phase.generate],  # A request that moto refuses is repeated, and takes seconds.
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def compared(dynamodb: DynamodbServer) -> Compared:
    documents = mixed_documents.documents(60)
    dynamodb.create("mixed", {"pk": "S", "sk": "N"})
    dynamodb.put("mixed", documents)
    request = dynamodb.request("mixed", *mixed_documents.SCHEMA)
    expected = mixed_documents.table_of(documents)
    return mixed_documents.compared(DynamodbSource().resolve(request), expected)


@settings(_PATIENT, max_examples=60)
@given(sql=mixed_documents.statements())
def test_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(_PATIENT, max_examples=5_000)
@given(sql=mixed_documents.statements())
def test_many_answers_are_those_of_the_engine(compared: Compared, sql: str) -> None:
    mixed_documents.compare(compared, sql)
