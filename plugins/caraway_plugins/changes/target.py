"""The dataset that change events are for, and why they may be refused."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.errors import InvalidRequestError, UnavailableError
from caraway_core.tables import Twice


class BadChangesError(InvalidRequestError):
    """The events cannot be read, or do not fit the dataset; none of them is applied."""


class RegistryAwayError(UnavailableError):
    """The registry of Avro schemas does not answer; the same events may pass later."""


class AvroSchemas(Protocol):
    """Avro schemas by the numbers that the Confluent wire format gives them."""

    def schema(self, number: int) -> Any:
        """Return the schema as JSON has it.

        Raises:
            BadChangesError: the registry has no such schema.
            RegistryAwayError: it does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """What is known of a dataset when its change events are read.

    `twice` says what a create or a snapshot read does where the key is there already: with
    "first" the row that is there stays, otherwise the new one takes its place. `avro_schema` is
    the text of the schema of raw Avro events that come without one.
    """

    schema: pa.Schema
    primary_key: tuple[str, ...] = ()
    twice: Twice = "last"
    avro_schema: str | None = None
    registry: AvroSchemas | None = None
