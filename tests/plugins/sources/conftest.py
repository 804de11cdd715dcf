"""Fixtures that several tests of the sources share."""

from tests.kit.s3 import s3_server

__all__ = ["s3_server"]
