"""The errors of datasets and models as listings show them, in the words of the specification."""

from typing import Literal

from pydantic import BaseModel

from caraway_core.errors import DatasetError, DatasetErrorType, ModelError, ModelErrorType

Category = Literal["dataset", "model", "worker", "runtime"]
ErrorType = Literal[
    "auth",
    "connection",
    "timeout",
    "validation",
    "not_found",
    "permission",
    "rate_limit",
    "internal",
    "unknown",
]
_TYPES: dict[DatasetErrorType | ModelErrorType, ErrorType] = {
    "auth": "auth",
    "context_length": "validation",
    "failed": "internal",
    "invalid": "validation",
    "not_found": "not_found",
    "quota": "rate_limit",
    "rate_limit": "rate_limit",
    "schema": "validation",
    "timeout": "timeout",
    "unavailable": "connection",
    "unsupported": "validation",
}
_WORDS: dict[ErrorType, tuple[tuple[str, ErrorType], ...]] = {
    "auth": (
        ("forbidden", "permission"),
        ("permission", "permission"),
        ("access denied", "permission"),
    ),
    "connection": (
        ("rate limit", "rate_limit"),
        ("too many requests", "rate_limit"),
        ("timeout", "timeout"),
        ("timed out", "timeout"),
    ),
}
"""Finer types, by words of the message, where the type of the error is coarse."""


class ComponentError(BaseModel):
    """The error of a component; `code` is `category.type` and stable."""

    category: Category
    type: ErrorType
    code: str

    @classmethod
    def from_error(cls, error: DatasetError | ModelError) -> "ComponentError":
        """Return the error of a dataset or a model."""
        category: Category = "dataset" if isinstance(error, DatasetError) else "model"
        type_ = _type(_TYPES[error.type], error.message.lower())
        return cls(category=category, type=type_, code=f"{category}.{type_}")


def _type(coarse: ErrorType, text: str) -> ErrorType:
    return next((finer for word, finer in _WORDS.get(coarse, ()) if word in text), coarse)
