"""Rows of inputs in files in memory, which serialized plans name instead of holding the rows.

A serialized plan holds the rows of its tables in memory. They are then copied five times: into the
message, out of the engine, with each change of the message, into the engine, and into batches.
"""

import fcntl
import os
import resource
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock

import pyarrow as pa
from datafusion import ExecutionPlan, SessionConfig, SessionContext
from pyarrow import ipc

from caraway_core.protocols.fleet import TaskTable
from caraway_engine.sharing import file_leaves
from caraway_engine.stages import fragments
from caraway_engine.statements import wire

_MEMORY_SCAN = 35
_PARTITIONS, _SCHEMA, _PROJECTION, _SHOWS_SIZES = 1, 2, 3, 5
_FIELD, _NAME = 1, 1
_DISPLAY = "DataSourceExec: partitions="
_MOST_FILES = 1 << 20
_numbers = count()
_lock = Lock()


class NoMemoryFileError(Exception):
    """Rows cannot be in such a file here."""


class MemoryFile:
    """Rows in the file format of Arrow, in the memory of this process.

    It ends with its last reference. Until its number is used again, many others are used: an engine
    that still ends a cancelled plan must not open another file.
    """

    def __init__(self, rows: TaskTable) -> None:
        if not hasattr(os, "memfd_create"):
            raise NoMemoryFileError
        try:
            self._number = _numbered(os.memfd_create("caraway-inputs", os.MFD_CLOEXEC))
        except OSError as exc:
            raise NoMemoryFileError from exc
        try:
            with os.fdopen(os.dup(self._number), "wb") as file:
                with ipc.new_file(file, rows.schema) as writer:
                    for batch in fragments.batches(rows):
                        writer.write_batch(batch)
        except (OSError, pa.ArrowInvalid) as exc:
            raise NoMemoryFileError from exc

    def read_file(self) -> file_leaves.ReadFile:
        """Return the file as a scan names it.

        Raises:
            NoMemoryFileError: files of this process cannot be opened by number.
        """
        path = f"proc/self/fd/{self._number}"
        try:
            state = os.stat(f"/{path}")
        except OSError as exc:
            raise NoMemoryFileError from exc
        return file_leaves.made_file(path, state.st_size, state.st_mtime_ns)

    def __del__(self) -> None:
        if number := getattr(self, "_number", None):
            os.close(number)


@dataclass(frozen=True, slots=True)
class InputScan:
    """A scan of the rows of an input, in a serialized plan: of an empty file until it is filled."""

    name: str
    message: bytes


@dataclass(frozen=True, slots=True)
class PlanWithoutRows:
    """A serialized plan whose inputs are to be filled in."""

    message: bytes
    scans: tuple[InputScan, ...]

    def filled(self, inputs: Sequence[TaskTable]) -> tuple[bytes, Sequence[MemoryFile]]:
        """Return the message of a plan that reads these rows, and the files that it reads.

        Raises:
            NoMemoryFileError: the rows cannot be in files.
        """
        by_name = {each.name: each for each in inputs}
        files: dict[str, MemoryFile] = {}
        message = self.message
        for scan in self.scans:
            if scan.name not in files:
                files[scan.name] = MemoryFile(by_name[scan.name])
            leaf = file_leaves.read(scan.message)
            new = file_leaves.reading(leaf, files[scan.name].read_file())
            message = wire.replaced(message, scan.message, new)
        return message, list(files.values())


def without_rows(
    plan: ExecutionPlan, message: bytes, inputs: Sequence[TaskTable]
) -> PlanWithoutRows | None:
    """Take the rows of inputs out of a serialized plan, or return None if that is not possible.

    Raises:
        ValueError: the message cannot be parsed.
    """
    scans: list[InputScan] = []
    for leaf in {each.to_bytes(): None for each in _memory_leaves(plan)}:
        columns = _columns(leaf)
        named = [each for each in inputs if columns and each.schema.names == columns[0]]
        if columns is None or len(named) != 1:
            return None  # Inputs whose columns have the same names cannot be told apart.
        (rows,) = named
        if any(map(_has_dictionary, rows.schema.types)):
            return None
        # The engine reads a message without a projection as one of all columns.
        scan = _empty_scan(rows, columns[1] or range(len(rows.schema)), len(scans))
        if scan is None:
            return None
        scans.append(InputScan(rows.name, scan))
        message = wire.replaced(message, leaf, scan)
    return PlanWithoutRows(message, tuple(scans))


def is_same(with_rows: ExecutionPlan, filled: ExecutionPlan) -> bool:
    """Return whether two plans differ only in where they read inputs from."""
    one, other = (each.display_indent().splitlines() for each in (with_rows, filled))
    return len(one) == len(other) and all(
        mine == its
        or (
            mine.strip().startswith(_DISPLAY)
            and its.strip().startswith("DataSourceExec: file_groups=")
            and its.endswith("file_type=arrow")
            and len(mine) - len(mine.lstrip()) == len(its) - len(its.lstrip())
        )
        for mine, its in zip(one, other, strict=True)
    )


def _numbered(number: int) -> int:
    """Move a file to a number that was not used for long."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if not 0 < limit < _MOST_FILES:
        limit = _MOST_FILES
    with _lock:
        least = limit // 2 + next(_numbers) % max(1, limit // 4)
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, least)
    finally:
        os.close(number)


def _memory_leaves(plan: ExecutionPlan) -> Iterator[ExecutionPlan]:
    for child in plan.children():
        yield from _memory_leaves(child)
    if plan.display().startswith(_DISPLAY):
        yield plan


def _columns(message: bytes) -> tuple[list[str], list[int]] | None:
    """Return the columns of the table that a scan of memory reads, and which of them it reads."""
    (node,) = wire.fields(message)
    names, read = list[str](), list[int]()
    if node.tag != _MEMORY_SCAN:
        return None
    for field in wire.fields(message, node.inside, node.end):
        if field.tag == _SCHEMA:
            for each in wire.fields(message, field.inside, field.end):
                if each.tag == _FIELD:
                    (name,) = (
                        part.content(message).decode()
                        for part in wire.fields(message, each.inside, each.end)
                        if part.tag == _NAME
                    )
                    names.append(name)
        elif field.tag == _PROJECTION:
            read = list(wire.varints(field.content(message)))
        elif field.tag not in (_PARTITIONS, _SHOWS_SIZES):
            return None
    # A scan that reads no columns has one that the table does not have.
    return (names, read) if all(index < len(names) for index in read) else None


@cache
def _context() -> SessionContext:
    """Return a context for planning, which all sessions share."""
    return SessionContext(SessionConfig().with_target_partitions(1))


def _has_dictionary(type_: pa.DataType) -> bool:
    """Return whether values of a type are, or hold, those of a dictionary."""
    inner = (type_.field(index).type for index in range(type_.num_fields))
    return bool(pa.types.is_dictionary(type_)) or any(map(_has_dictionary, inner))


def _empty_scan(rows: TaskTable, read: Sequence[int], number: int) -> bytes | None:
    """Return the message of a scan of an empty file with the columns of an input."""
    with tempfile.TemporaryDirectory(prefix="caraway-") as folder:
        path = Path(folder) / f"{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, rows.schema):
            pass
        table = f"empty_{uuid.uuid4().hex}"
        context = _context()
        context.register_arrow(table, str(path))
        try:
            names = ", ".join(f'"{rows.schema.names[index]}"' for index in read)
            plan = context.sql(f"SELECT {names} FROM {table}").execution_plan()
        finally:
            context.deregister_table(table)
        if plan.children():
            return None
        return bytes(plan.to_bytes())
