"""Parses submissions: the request, its idempotency key and job ids."""

import math
import re
from typing import Any

from caraway_core.errors import JobNotFoundError
from caraway_core.ids import JobId
from caraway_core.sqltext import placeholders
from caraway_scheduler.jobs.model import JobRequest
from caraway_serving import parsing
from caraway_serving.errors import RefusedRequestError

_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_LONGEST_S = 1e9
"""Thirty years: unlimited for clients, but still a valid date when added to one."""
_LARGEST = 2**63 - 1
_EXAMPLE = 'send {"sql": "SELECT ...", "parameters": {...}}'


def parse(body: bytes, content_type: str | None) -> JobRequest:
    """Parse a JSON body; unknown fields are ignored for compatibility with other versions.

    Raises:
        RefusedRequestError: the body is not JSON, or a field is invalid.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise RefusedRequestError(
            415, f"'{media_type}' cannot be read; send JSON with Content-Type: application/json"
        )
    document = _document(body)
    sql = document.get("sql")
    if not isinstance(sql, str):
        raise RefusedRequestError(422, f'the field "sql" must be a string; {_EXAMPLE}')
    return JobRequest(
        sql=sql,
        parameters=_parameters(document.get("parameters")),
        timeout_s=_timeout_s(document.get("timeout_seconds")),
        maximum_size=_maximum_size(document.get("maximum_size")),
    )


def idempotency_key(header: str | None) -> str:
    """Return the idempotency key, or "" if there is none.

    Raises:
        RefusedRequestError: the key is empty, too long, or not visible ASCII.
    """
    if header is None:
        return ""
    header = header.strip(
        " \t"
    )  # Parsers of HTTP leave the space at the end, which is no part of it.
    if not _KEY.fullmatch(header):
        raise RefusedRequestError(
            400, "the Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID"
        )
    return header


def job_id(text: str) -> JobId:
    """Return a job id from a request, without looking it up if it is malformed.

    Raises:
        JobNotFoundError: the text cannot be a job id.
    """
    if not _ID.fullmatch(text):
        raise JobNotFoundError(f"no query '{text[:100]}'; GET /v1/queries lists yours")
    return JobId(text)


def _document(body: bytes) -> dict[str, object]:
    document = parsing.json(body, _EXAMPLE)
    if not isinstance(document, dict):
        raise RefusedRequestError(422, f"the request body must be a JSON object; {_EXAMPLE}")
    return document


def _parameters(values: object) -> dict[str, object]:
    if values is None:
        return {}
    if not isinstance(values, dict | list):
        raise RefusedRequestError(
            422,
            'the field "parameters" must be an object (for :name and $name) or an array (for $1 '
            "and ?)",
        )
    return placeholders.by_name(values)


def _timeout_s(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if not _is_number(seconds) or not 0 < seconds < math.inf:
        raise RefusedRequestError(
            422,
            'the field "timeout_seconds" must be a number greater than 0; leave it out for no '
            "time limit",
        )
    return float(min(seconds, _LONGEST_S))


def _maximum_size(size: Any) -> int | None:
    if size is None:
        return None
    if not _is_number(size) or size < 0 or size != size // 1:
        raise RefusedRequestError(
            422, 'the field "maximum_size" must be a number of bytes, 0 or more'
        )
    return int(min(size, _LARGEST))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
