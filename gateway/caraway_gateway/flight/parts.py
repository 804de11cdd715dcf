"""Finished asynchronous queries over Flight: one endpoint for each stored chunk of an answer.

A ticket names a chunk and holds no secret: each use of it looks the query up for the principal
that asks, so that it is worth nothing to others. Every scheduler can read each chunk.
"""

import re
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import flight

from caraway_core.ids import JobId
from caraway_gateway.api.queries import submissions
from caraway_gateway.flight import actions
from caraway_gateway.flight.callers import Caller
from caraway_scheduler.jobs.service import JobService
from caraway_serving.flight import statuses
from caraway_serving.formats import columns

FOLDER = "queries"
# No SQL text begins with NUL, so no statement is taken for the ticket of a part.
_TICKET = re.compile(rb"\0queries/([^/]{1,64})/([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of the answer of an asynchronous query: what to fetch, how much it is, and where.

    `locations` are the addresses that have it; empty: the server of the parts.
    """

    job_id: JobId
    index: int
    row_count: int
    size_bytes: int
    locations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartedAnswer:
    """The columns of an answer, and its parts in the order of its rows."""

    schema: pa.Schema
    parts: tuple[AnswerPart, ...]

    def info(self, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        """Word the answer as endpoints."""
        endpoints = [flight.FlightEndpoint(ticket(each), each.locations) for each in self.parts]
        rows = sum(each.row_count for each in self.parts)
        size_bytes = sum(each.size_bytes for each in self.parts)
        return flight.FlightInfo(self.schema, descriptor, endpoints, rows, size_bytes, ordered=True)


def asked(descriptor: flight.FlightDescriptor) -> JobId | None:
    """Return the query whose answer a descriptor asks for, by the path `queries/ID`.

    Raises:
        CarawayError: the id has not the form of one.
    """
    if descriptor.descriptor_type != flight.DescriptorType.PATH:
        return None
    path = b"/".join(descriptor.path).decode(errors="replace").split("/")
    return submissions.job_id(path[1]) if len(path) == 2 and path[0] == FOLDER else None


def ticket(part: AnswerPart) -> bytes:
    """Return the ticket of a part."""
    return f"\0{FOLDER}/{part.job_id}/{part.index}".encode()


def read_ticket(sent: bytes) -> tuple[JobId, int] | None:
    """Return the query and the number of the chunk that a ticket names; None: it is no such one.

    Raises:
        CarawayError: the id has not the form of one.
    """
    match = _TICKET.fullmatch(sent)
    if match is None:
        return None
    return submissions.job_id(match[1].decode(errors="replace")), int(match[2])


async def find(service: JobService, caller: Caller, job_id: JobId) -> PartedAnswer:
    """Find the parts of a finished query of the caller.

    Raises:
        CarawayError, StatusError: it is not the caller's, not finished, failed or expired.
    """
    manifest = await actions.manifest(service, await service.find(caller.principal.id, job_id))
    parts = (
        AnswerPart(job_id, number, each.row_count, each.size_bytes)
        for number, each in enumerate(manifest.chunks)
    )
    return PartedAnswer(columns.without_views(manifest.schema), tuple(parts))


async def read(service: JobService, caller: Caller, job_id: JobId, index: int) -> pa.Table:
    """Read one part of a finished query of the caller.

    Raises:
        CarawayError, StatusError: as `find`, or there is no such part.
    """
    job = await service.find(caller.principal.id, job_id)
    manifest = await actions.manifest(service, job)
    if index >= len(manifest.chunks):
        raise statuses.NotFound(f"query '{job_id}' has no chunk {index}")
    batches = [batch async for batch in service.read(job, manifest.chunks[index : index + 1])]
    table = pa.Table.from_batches(batches, manifest.schema)
    return table.cast(columns.without_views(manifest.schema))
