"""Datasets that are an API over HTTP, and what their tests ask of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.plugins.sources import reading

PEOPLE = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}]


def dataset(
    server: ApiServer, path: str, tmp_path: Path, *declared: pa.Field, **params: str
) -> reading.Dataset:
    return reading.Dataset("http", f"{server.address}{path}", tmp_path, params, declared)


def scan(of: reading.Dataset, request: RowRequest) -> list[dict[str, Any]]:
    """Read rows as an executor does that has a filter or a limit."""
    spec = of.resolve()
    found = [row for batch in scanners.of(spec).scan(spec, request) for row in batch.to_pylist()]
    return found


def cut(rows: list[Any], by: str = "offset") -> Callable[[ApiRequest], ApiAnswer]:
    """Answer with two rows at most, from an offset or of a page."""

    def answer(request: ApiRequest) -> ApiAnswer:
        at = int(request.params[by]) if by == "offset" else 2 * (int(request.params[by]) - 1)
        return ApiAnswer(rows[at : at + 2])

    return answer


def refusal(of: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        of.resolve()
    return caught.value
