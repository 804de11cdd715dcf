"""Selects an encoding from `Accept-Encoding`, and reads the q-values of such headers."""

from collections.abc import Mapping, Sequence
from typing import Literal

Coding = Literal["identity", "gzip", "zstd"]


def coding(accept_encoding: str | None, candidates: Sequence[Coding] = ("zstd", "gzip")) -> Coding:
    """Select an encoding that the client accepts with a q-value; the first one wins ties."""
    weights = dict(weighted(accept_encoding or ""))
    rest = weights.get("*", 0.0)
    best: Coding = "identity"
    # Identity is always acceptable, but preferred only if a q-value says so.
    best_weight = weights.get("identity", 0.0)
    for candidate in candidates:
        weight = weights.get(candidate, rest)
        if (weight > 0 and weight > best_weight) or (
            weight == best_weight > 0 and best == "identity"
        ):
            best, best_weight = candidate, weight
    return best


def of_request(headers: Mapping[str, str]) -> Coding:
    """Select the encoding of rows; a client that sends `no-transform` gets them as they are."""
    if "no-transform" in headers.get("cache-control", "").lower():
        return "identity"
    return coding(headers.get("accept-encoding"))


def weighted(header: str) -> list[tuple[str, float]]:
    """Return the names of a header with their weights, in lower case."""
    found = []
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name:
            found.append((name, _weight(parameters)))
    return found


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                # Zero comes first: "nan" is a float, and no order of ranges could hold it.
                return min(max(0.0, float(value)), 1.0)
            except ValueError:
                return 0.0
    return 1.0
