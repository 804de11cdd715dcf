"""Secrets of AWS: errors of each kind, and texts that are objects or not."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import aws
from caraway_plugins.secrets.aws import AwsSecretsManager

_LOGIN = {"aws_access_key_id": "hunter1", "aws_secret_access_key": "hunter2"}


class Client:
    """Answers as boto3 does."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def get_secret_value(self, SecretId: str) -> Any:
        assert SecretId == "app/db"
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "hunter2"}}, "GetSecretValue")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("hunter2", {"value": "hunter2"}),
        ("", {"value": ""}),
        ("[1]", {"value": "[1]"}),
        ("5", {"value": "5"}),
        ("{}", {}),
        ('{"a": "b", "port": 5, "on": true, "no": null, "l": ["x"]}',
         {"a": "b", "port": "5", "on": "true", "no": "null", "l": '["x"]'}),
    ],
)  # fmt: skip
def test_values_of_a_secret(text: str, values: dict[str, str]) -> None:
    found = aws._read("the secret", Client({"SecretString": text}), "app/db")
    assert (found.values, found.valid_s) == (values, None)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused("ResourceNotFoundException"), "does not exist; check its name and the region"),
        (refused("AccessDeniedException"), r"access is denied \(AccessDeniedException\)"),
        (refused("ExpiredTokenException"), "access is denied"),
        (refused("ThrottlingException"), "AWS answered ThrottlingException"),
        (EndpointConnectionError(endpoint_url="http://hunter2"), "EndpointConnectionError; check"),
        ({"SecretBinary": b"hunter2"}, "holds bytes"),
    ],
)
def test_errors_quote_no_answer(answer: object, said: str) -> None:
    with pytest.raises(CarawayError, match=said) as caught:
        aws._read("the secret", Client(answer), "app/db")
    assert "hunter" not in caught.value.message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "NoRegionError; check params.aws_region"),
        ({"aws_region": "no region!"}, "InvalidRegionError"),
        ({"aws_region": "eu-central-1", "aws_endpoint": "not a url"}, "params.aws_endpoint"),
        ({"aws_region": "eu-central-1", "aws_secret_access_key": None}, "PartialCredentialsError"),
    ],
)
def test_stores_that_cannot_be_opened_say_so(
    params: dict[str, str | None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    given = {"path": "app/db", **_LOGIN, **params}
    written = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(CarawayError, match=said) as caught:
        AwsSecretsManager(written, Path("/"), {})
    assert "hunter" not in caught.value.message
