"""Temporary credentials of S3 that open a part of what others do, from a token service."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit

import httpx

from caraway_core.tables import StoreSpec

_VERSION = "2011-06-15"
_FORM = "application/x-www-form-urlencoded; charset=utf-8"
_TIMEOUT_S = 10.0
_MOST_BYTES = 64 * 1024
_CODE = re.compile(r"<Code>([A-Za-z.]{1,100})</Code>")


class TokenServiceError(Exception):
    """The service gave no credentials; the message has no secrets."""


@dataclass(frozen=True, slots=True)
class TemporaryKeys:
    """Credentials of S3 that end by themselves."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    ends_at: datetime = field(default=datetime.min)


def has_keys(spec: StoreSpec) -> bool:
    """Return whether a store is signed in to by keys, which a token service takes."""
    return spec.kind == "s3" and "access_key_id" in spec.options


def assume(
    spec: StoreSpec, role_arn: str, policy: str, seconds: int, endpoint: str | None = None
) -> TemporaryKeys:
    """Return credentials of a role that open only what a policy allows besides. This blocks.

    Raises:
        TokenServiceError: the service is away, or refuses.
    """
    region = spec.options.get("region", "us-east-1")
    url = endpoint or f"https://sts.{region}.amazonaws.com"
    body = urlencode({
        "Action": "AssumeRole",
        "Version": _VERSION,
        "RoleArn": role_arn,
        "RoleSessionName": "caraway-tables",
        "Policy": policy,
        "DurationSeconds": str(seconds),
    })  # fmt: skip
    headers = signed_headers(url, body, spec.options, region, datetime.now(UTC))
    try:
        with (
            httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            content = b""
            for part in answer.iter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    raise TokenServiceError("the token service answers with too much")
    except httpx.HTTPError as exc:
        raise TokenServiceError(f"the token service is away: {type(exc).__name__}") from exc
    text = content.decode(errors="replace")
    if answer.status_code != 200:
        code = _CODE.search(text)
        said = f" ({code[1]})" if code else ""
        raise TokenServiceError(f"the token service refuses: {answer.status_code}{said}")
    return _read(text)


def signed_headers(
    url: str, body: str, keys: Mapping[str, str], region: str, at: datetime
) -> dict[str, str]:
    """Return the headers of a request to a token service, signed with version 4 of signatures."""
    parts = urlsplit(url)
    moment, day = at.strftime("%Y%m%dT%H%M%SZ"), at.strftime("%Y%m%d")
    headers = {"content-type": _FORM, "host": parts.netloc, "x-amz-date": moment}
    if token := keys.get("session_token"):
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    path = parts.path or "/"
    canonical = f"POST\n{path}\n\n{lines}\n{names}\n{_sha256(body)}"
    scope = f"{day}/{region}/sts/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{_sha256(canonical)}"
    key = f"AWS4{keys['secret_access_key']}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    credential = f"{keys['access_key_id']}/{scope}"
    value = (
        f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return {**headers, "authorization": value}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(text: str) -> TemporaryKeys:
    found = [
        re.search(rf"<{name}>([^<]{{1,8192}})</{name}>", text)
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    ]
    try:
        key_id, secret, token, ends = (each[1].strip() for each in found if each is not None)
        ends_at = datetime.fromisoformat(ends)
    except ValueError as exc:
        raise TokenServiceError("the answer of the token service is not known") from exc
    return TemporaryKeys(key_id, secret, token, ends_at)
