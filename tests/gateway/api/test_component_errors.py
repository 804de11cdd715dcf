"""The errors of datasets and models in the words of the specification."""

from typing import get_args

import pytest

from caraway_core.errors import DatasetError, DatasetErrorType, ModelError, ModelErrorType
from caraway_gateway.api.component_errors import ComponentError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DatasetError("not_found", "'t' does not exist"), "dataset.not_found"),
        (DatasetError("auth", "wrong password"), "dataset.auth"),
        (DatasetError("auth", "Permission denied for table t"), "dataset.permission"),
        (DatasetError("invalid", "the permission is misspelt"), "dataset.validation"),
        (DatasetError("schema", "column a is gone"), "dataset.validation"),
        (DatasetError("unsupported", "no such format"), "dataset.validation"),
        (DatasetError("unavailable", "connection refused"), "dataset.connection"),
        (DatasetError("unavailable", "the server timed out"), "dataset.timeout"),
        (DatasetError("unavailable", "Too Many Requests"), "dataset.rate_limit"),
        (ModelError("the provider failed"), "model.internal"),
        (ModelError("no credit", "quota"), "model.rate_limit"),
        (ModelError("too long", "context_length"), "model.validation"),
        (ModelError("slow", "timeout"), "model.timeout"),
    ],
)
def test_code_is_category_and_type(error: DatasetError | ModelError, code: str) -> None:
    told = ComponentError.from_error(error)
    assert told.code == code == f"{told.category}.{told.type}"


def test_every_type_of_error_has_a_code() -> None:
    for type_ in get_args(DatasetErrorType):
        assert ComponentError.from_error(DatasetError(type_, "x")).category == "dataset"
    for kind in get_args(ModelErrorType):
        assert ComponentError.from_error(ModelError("x", kind)).category == "model"
