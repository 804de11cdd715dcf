"""Descriptors of the parts of a job's results."""

from pyarrow import flight


def described(job_id: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_path("queries", job_id)
