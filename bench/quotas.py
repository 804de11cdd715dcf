"""Holds trees of processes to a part of a core each, by CPU quotas of the kernel."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_TICKS = os.sysconf("SC_CLK_TCK")


class NoQuotasError(Exception):
    """This machine lets the process set no quotas."""


@dataclass(frozen=True, slots=True)
class HeldProcesses:
    """Processes that share a quota; those that they start belong to them."""

    folder: Path

    def used_s(self) -> float:
        """Return the processor time that the processes alive now have used."""
        return sum(map(_used_s, map(int, (self.folder / "cgroup.procs").read_text().split())))


@contextlib.contextmanager
def held(roots: Sequence[int], cores: float) -> Iterator[list[HeldProcesses]]:
    """Hold each process and its descendants to a number of cores, until the block ends.

    Raises:
        NoQuotasError: quotas need root, and a cgroup hierarchy with the `cpu` controller.
    """
    groups: list[HeldProcesses] = []
    try:
        for root in roots:
            groups.append(_group(f"caraway-bench-{root}", cores))
            for pid in descendants(root):
                # A short-lived one may have ended.
                with contextlib.suppress(ProcessLookupError):
                    (groups[-1].folder / "cgroup.procs").write_text(str(pid))
        yield groups
    finally:
        for each in groups:
            _release(each.folder)


def descendants(root: int) -> list[int]:
    """Return a process and all that it started, directly or not."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def used_s(root: int) -> float:
    """Return the processor time of a process and all that it started, ended or not."""
    return sum(_used_s(pid, with_ended=True) for pid in descendants(root))


def _group(name: str, cores: float) -> HeldProcesses:
    quota_us = int(cores * _PERIOD_US)
    try:
        if (_GROUPS / "cpu" / "cgroup.procs").exists():
            folder = _GROUPS / "cpu" / name
            folder.mkdir()
            (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            folder = _GROUPS / name
            folder.mkdir()
            (folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
    except OSError as exc:
        raise NoQuotasError(f"cannot set CPU quotas below {_GROUPS}: {exc.strerror}") from exc
    return HeldProcesses(folder)


def _release(folder: Path) -> None:
    """Move what is left to the parent, and remove the group."""
    for pid in (folder / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (folder.parent / "cgroup.procs").write_text(pid)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _used_s(pid: int, *, with_ended: bool = False) -> float:
    """Return the processor time of a process, or also that of its children that ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11 : 15 if with_ended else 13])) / _TICKS
    return 0.0
