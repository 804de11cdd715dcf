"""Errors of disks become errors with a remedy, and show no paths."""

import errno
import os
from pathlib import Path

import pytest

from caraway_core.errors import DiskFullError, ResultStoreAwayError
from caraway_core.process import disks


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_says_so(number: int) -> None:
    with pytest.raises(DiskFullError) as caught, disks.failing("cannot write a chunk"):
        raise OSError(number, os.strerror(number), "/secret/path")
    told = caught.value.message
    assert told.startswith(f"cannot write a chunk: {os.strerror(number)}; free or add space")
    assert "/secret" not in told and caught.value.retry_after_s > 2


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EROFS, errno.ENOENT])
def test_a_failing_disk(number: int) -> None:
    with pytest.raises(ResultStoreAwayError) as caught, disks.failing("cannot read"):
        raise OSError(number, os.strerror(number), "/secret/path")
    assert caught.value.message.startswith(f"cannot read: {os.strerror(number)}; check the disk")
    assert "/secret" not in caught.value.message


def test_an_error_without_a_reason_has_its_class() -> None:
    error = disks.failure("cannot read", BlockingIOError())
    assert "cannot read: BlockingIOError;" in error.message


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), disks.failing("x"):
        1 / 0  # noqa: B018


def test_room_is_that_of_the_disk(tmp_path: Path) -> None:
    assert not disks.has_no_room(tmp_path)
    assert not disks.has_no_room(tmp_path / "none")
