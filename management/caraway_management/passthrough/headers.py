"""The headers that pass between callers and runtimes. All others stay on their side."""

from collections.abc import Iterable

API_KEY = "x-api-key"
LENGTH = b"content-length"
_TO_RUNTIME = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"cache-control",
        b"content-encoding",
        LENGTH,
        b"content-type",
        b"idempotency-key",
        b"traceparent",
        b"tracestate",
        b"user-agent",
    }
)
_TO_CALLER = frozenset(
    {
        b"cache-control",
        b"content-disposition",
        b"content-encoding",
        LENGTH,
        b"content-type",
        b"etag",
        b"last-modified",
        b"retry-after",
        b"traceparent",
        b"vary",
    }
)
Header = tuple[bytes, bytes]


def to_runtime(received: Iterable[Header], api_key: str) -> list[Header]:
    """Return the headers of the request to a runtime: some of the caller's, and the key.

    Credentials of the caller, cookies and headers of the hop are not among them.
    """
    passed = [(name, value) for name, value in received if name.lower() in _TO_RUNTIME]
    if not any(name.lower() == b"accept-encoding" for name, _ in passed):
        # Otherwise the client would ask for compression that the caller did not ask for.
        passed.append((b"accept-encoding", b"identity"))
    return [*passed, (API_KEY.encode(), api_key.encode())]


def to_caller(received: Iterable[Header]) -> list[Header]:
    """Return the headers of the response of a runtime that its caller gets."""
    return [(name.lower(), value) for name, value in received if name.lower() in _TO_CALLER]


def length(received: Iterable[Header]) -> int:
    """Return the length that a response declares; -1 if it declares none."""
    for name, value in received:
        if name.lower() == LENGTH and value.isdigit():
            return int(value)
    return -1
