"""Uploads of some kilobytes that become more than the memory of a real process."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.settings import Address
from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from tests.gateway.flight.serving import client, command
from tests.gateway.flight.sql.driving import act, put
from tests.kit.processes import Child, child

MIB = 1024 * 1024
TOTAL, BOMB = 320 * MIB, 224 * MIB
PROGRAM_BYTES = 400 * MIB
"""More than the process has without uploads, and less than with one of these."""
PROGRAM = f"""\
#!{sys.executable}
from caraway_core.manifest.texts import memory

memory.total_bytes = lambda: {TOTAL}
from caraway.cli import main

main()
"""
MANIFEST = """\
version: v1
kind: Caraway
name: bombs
datasets:
  - from: memory:t
    name: t
    access: read_write
    columns: [{name: a, type: bigint}, {name: s, type: text}]
"""
Options = proto.CommandStatementIngest.TableDefinitionOptions
INGEST = proto.CommandStatementIngest(
    table="t",
    table_definition_options=Options(
        if_not_exist=Options.TABLE_NOT_EXIST_OPTION_FAIL,
        if_exists=Options.TABLE_EXISTS_OPTION_APPEND,
    ),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A runtime that believes to be in a small container."""
    folder = tmp_path_factory.mktemp("small")
    program, manifest = folder / "program", folder / "caraway.yaml"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    manifest.write_text(MANIFEST)
    with child(folder, manifest, program=program) as running:
        yield running


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("door", ["path", "command", "ingestion", "query", "update"])
def test_compressed_rows_that_do_not_fit_into_memory_are_refused(
    small: Child, door: str, codec: str
) -> None:
    zeros = pa.Array.from_buffers(pa.int64(), BOMB // 8, [None, pa.py_buffer(bytes(BOMB))])
    rows = pa.table({"a": zeros})
    options = flight.FlightCallOptions(
        write_options=pa.ipc.IpcWriteOptions(compression=codec), timeout=60
    )
    with client(Address.parse(small.addresses["flight"])) as connected:
        descriptor = _descriptor(connected, door)
        with pytest.raises(pa.ArrowInvalid, match="holds more than 16777216 bytes of rows"):
            put(descriptor, rows, options)(connected)
    _check(small)


@pytest.mark.parametrize("count", [230, 10_000])
def test_values_of_a_dictionary_that_do_not_fit_into_memory_are_refused(
    small: Child, count: int
) -> None:
    """Without compression: the same text of 1 MiB in many rows."""
    repeated = pa.DictionaryArray.from_arrays(
        pa.array([0] * count, pa.int16()), pa.array(["x" * MIB])
    )
    with client(Address.parse(small.addresses["flight"])) as connected:
        with pytest.raises(pa.ArrowInvalid, match="at most 256 MiB of rows"):
            put(flight.FlightDescriptor.for_path("t"), pa.table({"s": repeated}))(connected)
    _check(small)


def _descriptor(connected: flight.FlightClient, door: str) -> flight.FlightDescriptor:
    if door == "path":
        return flight.FlightDescriptor.for_path("t")
    if door == "command":
        return command("t")
    if door == "ingestion":
        return command(messages.packed(INGEST))
    sql = "SELECT $1" if door == "query" else "INSERT INTO t (a) VALUES ($1)"
    asked = proto.ActionCreatePreparedStatementRequest(query=sql)
    (answer,) = act("CreatePreparedStatement", asked)(connected)
    made = messages.read_as(proto.ActionCreatePreparedStatementResult, answer)
    kind = (
        proto.CommandPreparedStatementQuery
        if door == "query"
        else proto.CommandPreparedStatementUpdate
    )
    bound = kind(prepared_statement_handle=made.prepared_statement_handle)
    return command(messages.packed(bound))


def _check(small: Child) -> None:
    """Look if any rows of an upload were ever in memory, and if the process works."""
    status = Path(f"/proc/{small.process.pid}/status").read_text()
    (peak_kib,) = (int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
    assert peak_kib * 1024 < PROGRAM_BYTES
    with client(Address.parse(small.addresses["flight"])) as connected:
        put(flight.FlightDescriptor.for_path("t"), pa.table({"a": [1]}))(connected)
    assert small.sql("SELECT count(*) > 0 AS found FROM t").json() == [{"found": True}]
