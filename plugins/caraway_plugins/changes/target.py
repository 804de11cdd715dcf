"""The dataset that change events are for, and the errors of rejected events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.errors import InvalidRequestError, UnavailableError
from caraway_core.tables import Twice


class BadChangesError(InvalidRequestError):
    """The events cannot be read or do not fit the dataset; none of them is applied."""


class RegistryAwayError(UnavailableError):
    """The schema registry does not respond; the same events may succeed later."""


class AvroSchemas(Protocol):
    """Avro schemas by their id in the Confluent wire format."""

    def schema(self, number: int) -> Any:
        """Return the schema, parsed from JSON.

        Raises:
            BadChangesError: the registry has no such schema.
            RegistryAwayError: the registry does not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProtobufFile:
    """A file of Protobuf definitions, as others import it, and its serialized descriptor."""

    name: str
    content: bytes


class RegisteredSchemas(AvroSchemas, Protocol):
    """Schemas of all kinds by their id in the Confluent wire format."""

    def files(self, number: int) -> Sequence[ProtobufFile]:
        """Return the files of a Protobuf schema, each after those that it imports.

        Raises:
            BadChangesError: the registry has no such schema.
            RegistryAwayError: the registry does not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """The dataset's properties that are needed to decode change events.

    `twice` is the policy for a create or a snapshot read whose key exists: "first" keeps the
    existing row, "last" replaces it. `avro_schema` is the schema of bare Avro events that are sent
    without one. Where `is_learned`, the columns come from the first events; without columns there
    were none yet. Where `are_rows`, each JSON object is a row that is created, without an event
    around it.
    """

    schema: pa.Schema
    primary_key: tuple[str, ...] = ()
    twice: Twice = "last"
    avro_schema: str | None = None
    registry: RegisteredSchemas | None = None
    is_learned: bool = False
    are_rows: bool = False

    @property
    def remedy(self) -> str:
        """Say what gives the dataset other columns."""
        if self.is_learned:
            return (
                "the dataset's columns come from its first events; leave the column as it was at "
                "the source, or declare 'columns' and give the dataset another name"
            )
        return "add it to the dataset's 'columns', or leave it out at the source"
