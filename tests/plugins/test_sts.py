"""Temporary credentials: requests are signed as AWS does, and failures show no secrets."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from caraway_core.tables import StoreSpec
from caraway_plugins import sts
from caraway_plugins.sts import TokenServiceError

KEYS = {"access_key_id": "AKIA1", "secret_access_key": "s3cr3t/+", "region": "eu-west-1"}
SPEC = StoreSpec("s3", "lake", "alias", KEYS)
GIVEN = """<AssumeRoleResponse><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>temporary</SecretAccessKey>
<SessionToken>token</SessionToken><Expiration>2030-01-02T03:04:05Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@pytest.mark.parametrize("token", [None, "long/token=="])
@pytest.mark.parametrize("url", ["https://sts.eu-west-1.amazonaws.com", "http://minio:9000/"])
def test_signatures_are_those_of_aws(url: str, token: str | None) -> None:
    body = "Action=AssumeRole&Policy=%7B%22a%22%3A+1%7D"
    keys = {**KEYS, **({"session_token": token} if token else {})}
    at = datetime(2026, 11, 27, 8, 9, 10, tzinfo=UTC)
    ours = sts.signed_headers(url, body, keys, "eu-west-1", at)
    request = AWSRequest("POST", url, data=body, headers={"content-type": ours["content-type"]})
    request.context["timestamp"] = ours["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIA1", "s3cr3t/+", token), "sts", "eu-west-1")
    request.headers["X-Amz-Date"] = ours["x-amz-date"]
    if token:
        request.headers["X-Amz-Security-Token"] = token
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    assert ours["authorization"].endswith(f"Signature={signature}")


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[httpx.Request]:
    asked = []
    client = httpx.Client

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        status, headers, text = answer
        return httpx.Response(status, headers=headers, text=text)

    monkeypatch.setattr(
        httpx, "Client", lambda **given: client(transport=httpx.MockTransport(handle), **given)
    )
    return asked


def test_credentials_are_those_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, (200, {}, GIVEN))
    keys = sts.assume(SPEC, "arn:role", "{}", 900)
    assert (keys.key_id, keys.secret, keys.token) == ("ASIA1", "temporary", "token")
    assert keys.ends_at == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert "temporary" not in repr(keys)
    assert str(asked[0].url) == "https://sts.eu-west-1.amazonaws.com"
    assert "Policy=%7B%7D" in asked[0].content.decode()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            (403, {}, "<Error><Code>AccessDenied</Code>s3cr3t/+</Error>"),
            "403 .AccessDenied.$",
        ),
        ((302, {"location": "http://other"}, ""), "refuses: 302$"),
        ((200, {}, "<html>s3cr3t/+</html>"), "is not known$"),
        ((200, {}, GIVEN.replace("2030", "soon")), "is not known$"),
        ((200, {}, "x" * 100_000), "too much$"),
        (httpx.ConnectError("to s3cr3t/+"), "is away: ConnectError$"),
    ],
)
def test_failures_tell_no_secrets(monkeypatch: pytest.MonkeyPatch, answer: Any, words: str) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(TokenServiceError, match=words) as failed:
        sts.assume(SPEC, "arn:role", "{}", 900)
    assert "s3cr3t" not in str(failed.value)
