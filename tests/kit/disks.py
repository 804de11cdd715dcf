"""Simulates full and broken disks, without root and without a separate file system."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

FULL = (errno.ENOSPC, errno.EDQUOT)
BROKEN = (errno.EIO, errno.EROFS)


@contextmanager
def disk_with_room_for(size_bytes: int) -> Iterator[None]:
    """Make the kernel reject writes beyond a file size, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def failing_fsync(number: int) -> Iterator[None]:
    """Make every fsync of the process fail, which is how disks report lost writes."""

    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        yield
