"""Tables as clients load them, and what the catalog says of them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.errors import InvalidRequestError
from caraway_core.tables import StoreSpec

_NAMESPACE = uuid.UUID("6a2f0f4e-6d53-4c8e-9e0b-4d2f4b8f3a51")


@dataclass(frozen=True, slots=True)
class TableTitle:
    """What the catalog says of a table beside its rows; `origin` tells it from one that replaces
    it.
    """

    name: str
    origin: str
    comment: str = ""
    docs: Mapping[str, str] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.name}\0{self.origin}"))

    def properties(self) -> dict[str, str]:
        """Return the properties that every table has."""
        comment = {"comment": self.comment} if self.comment else {}
        # A writer would put files there before it finds that it cannot commit.
        nowhere = f"caraway://{self.name}/is-read-only"
        paths = {"write.data.path": nowhere, "write.metadata.path": nowhere}
        return {"caraway.table": self.name, **paths, **comment}


@dataclass(frozen=True, slots=True)
class TableState:
    """Names the rows of a table at one moment, and has the moment.

    That is when the rows came to be, before any client asked for them: DuckDB reads no snapshot
    that is younger than its transaction.
    """

    key: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as clients load it: metadata, its location if it has one, and how to reach files."""

    metadata: Mapping[str, Any]
    location: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    """Names its state where it is published."""
    states: Mapping[int, str] = field(default_factory=dict)
    """The keys of the states that snapshots have their files from."""
    store: StoreSpec | None = field(default=None, repr=False)
    listed_until_ms: int | None = None
    """When to look which snapshots can be read still."""

    def key_of(self, snapshot_id: int | None) -> str:
        """Return the key of the state that a snapshot has, or the current one; "" without files.

        Raises:
            InvalidRequestError: the table does not list the snapshot.
        """
        if snapshot_id is None or snapshot_id == self.metadata["current-snapshot-id"]:
            return self.key
        if snapshot_id not in self.states:
            raise InvalidRequestError(
                f"there is no snapshot {snapshot_id} any more; load the table again"
            )
        return self.states[snapshot_id]

    def vended(self, credentials: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the answer to a client that takes temporary credentials.

        Those that open all files are in the configuration, too, where older clients look.
        """
        configs = [each["config"] for each in credentials]
        is_one = bool(configs) and all(each == configs[0] for each in configs)
        return self.document(configs[0] if is_one else None, credentials)

    def document(
        self, config: Mapping[str, str] | None = None, credentials: Sequence[Any] = ()
    ) -> bytes:
        """Return the answer to a client, with the configuration for opening the files."""
        location = {"metadata-location": self.location} if self.location else {}
        document = {
            **location,
            "metadata": self.metadata,
            "config": {**self.config, **(config or {})},
            **({"storage-credentials": credentials} if credentials else {}),
        }
        return json.dumps(document, separators=(",", ":")).encode()


def reach(store: StoreSpec | None) -> str:
    """Return where the files of a table are, for people."""
    if store is None:
        return "files of the machine that runs Caraway; readers need the same paths"
    return f"files in {store.kind}://{store.bucket}; readers need their own access to them"


def config(store: StoreSpec | None) -> dict[str, str]:
    """Return how clients reach a bucket, without what signs them in."""
    if store is None or store.kind != "s3":
        return {}
    options = store.options
    config = {"s3.region": options.get("region"), "client.region": options.get("region")}
    if endpoint := options.get("endpoint"):
        config |= {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    if options.get("skip_signature") == "true":
        config["s3.anonymous"] = "true"
    return {key: text for key, text in config.items() if text}
