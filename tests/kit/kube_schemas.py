"""Validates objects with the schemas of Kubernetes, each of which is read once."""

import functools
from collections.abc import Mapping
from typing import Any

import kubernetes_validate
from kubernetes_validate import ValidationError, utils

__all__ = ["ValidationError", "validate"]

# It reads one megabyte of definitions for each object.
utils.schema_contents = functools.cache(utils.schema_contents)


def validate(found: Mapping[str, Any], version: str) -> None:
    """Refuse what a version of Kubernetes does not know, too.

    Raises:
        ValidationError: the object is not valid.
    """
    kubernetes_validate.validate(dict(found), version, strict=True)
