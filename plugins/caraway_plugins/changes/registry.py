"""A client of the Confluent schema registry that caches schemas by id."""

import base64
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx
import orjson

from caraway_plugins.changes.target import BadChangesError, ProtobufFile, RegistryAwayError

_MOST_KEPT = 1000
_LARGEST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 100
_DEEPEST = 16
_KINDS = {"AVRO": "Avro", "PROTOBUF": "Protobuf"}
_CONNECT_S = 3.0
_ANSWER_S = 10.0


class Registry:
    """Fetches schemas from one registry and caches them; the schema of an id never changes."""

    def __init__(
        self, url: str, username: str = "", password: str = "", verify: Any = True
    ) -> None:
        """Create a client; raise ValueError if the URL is invalid."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("schema_registry_url must be http://HOST or https://HOST")
        if parts.username or parts.password:
            raise ValueError(
                "schema_registry_url must not contain credentials; "
                "set schema_registry_username and schema_registry_password"
            )
        self._url = url.rstrip("/")
        self._auth = httpx.BasicAuth(username, password) if username else None
        self._verify = verify
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def schema(self, number: int) -> Any:
        """Return the schema with this id, parsed from JSON.

        Raises:
            BadChangesError: there is no such schema, or it is not an Avro schema.
            RegistryAwayError: the registry does not respond, or denies access.
        """
        path = f"/schemas/ids/{number}"
        return self._once(path, lambda: _read(self._ask(path, f"schema {number}"), number))

    def files(self, number: int) -> Sequence[ProtobufFile]:
        """Return the files of a Protobuf schema, each after those that it imports.

        Raises:
            BadChangesError: there is no such schema, or it is not a Protobuf schema.
            RegistryAwayError: the registry does not respond, or denies access.
        """
        path = f"/schemas/ids/{number}?format=serialized"
        found: Sequence[ProtobufFile] = self._once(path, lambda: self._files(path, number))
        return found

    def _files(self, path: str, number: int) -> Sequence[ProtobufFile]:
        files: dict[str, ProtobufFile] = {}

        def take(name: str, at: str, depth: int) -> None:
            if depth > _DEEPEST or len(files) >= _MOST_FILES:
                raise BadChangesError(f"schema {number} of the registry imports too many files")
            document = _document(self._ask(at, f"schema {number}"), "PROTOBUF", number)
            for each in _references(document, number):
                if each.name not in files:
                    where = f"{quote(each.subject, safe='')}/versions/{each.version}"
                    take(each.name, f"/subjects/{where}?format=serialized", depth + 1)
            try:
                content = base64.b64decode(document["schema"], validate=True)
            except ValueError as exc:
                raise BadChangesError(
                    f"the registry does not serialize schema {number}; it has to know "
                    "format=serialized"
                ) from exc
            files[name] = ProtobufFile(name, content)

        take(f"caraway/schema_{number}.proto", path, 0)
        return tuple(files.values())

    def _once(self, key: str, find: Callable[[], Any]) -> Any:
        """Return what was found before, or find it."""
        # The lock also covers the request, so that concurrent callers fetch a schema only once.
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            found = self._kept[key] = find()
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return found

    def _ask(self, path: str, what: str) -> bytes:
        if self._client is None:
            self._client = httpx.Client(
                auth=self._auth,
                verify=self._verify if self._url.startswith("https:") else False,
                timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
                trust_env=False,
            )
        accept = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        try:
            with self._client.stream("GET", self._url + path, headers=accept) as answer:
                if answer.status_code == 404:
                    raise BadChangesError(f"the schema registry has no {what}")
                if answer.status_code != 200:
                    raise RegistryAwayError(_refused(answer.status_code))
                return _bounded(answer)
        except httpx.HTTPError as exc:
            reason = str(exc) or type(exc).__name__
            raise RegistryAwayError(f"the schema registry does not respond: {reason}") from exc


def of_params(params: Mapping[str, str]) -> Registry | None:
    """Return the registry that the params of a dataset configure, or None.

    Raises:
        ValueError: the URL is invalid.
    """
    url = params.get("schema_registry_url")
    if not url:
        return None
    return Registry(
        url,
        params.get("schema_registry_username", ""),
        params.get("schema_registry_password", ""),
    )


def _refused(status: int) -> str:
    if status in (401, 403):
        return (
            f"the schema registry denied access ({status}); check the dataset's params "
            "schema_registry_username and schema_registry_password"
        )
    return f"the schema registry returned {status}; send the events again later"


def _bounded(answer: httpx.Response) -> bytes:
    body = bytearray()
    for chunk in answer.iter_bytes(64 * 1024):
        body += chunk
        if len(body) > _LARGEST_BYTES:
            raise BadChangesError(f"the schema is larger than {_LARGEST_BYTES} bytes")
    return bytes(body)


class _Reference(NamedTuple):
    name: str
    subject: str
    version: int


def _references(document: Any, number: int) -> list[_Reference]:
    try:
        return [
            _Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in document.get("references") or ()
        ]
    except (ValueError, KeyError, TypeError) as exc:
        raise BadChangesError(f"the references of schema {number} cannot be read") from exc


def _document(body: bytes, wanted: str, number: int) -> Any:
    try:
        document = orjson.loads(body)
        kind, text = document.get("schemaType") or "AVRO", document["schema"]
    except (ValueError, AttributeError, KeyError, TypeError) as exc:
        raise RegistryAwayError("the response is not from a schema registry") from exc
    if kind != wanted or not isinstance(text, str):
        raise BadChangesError(
            f"schema {number} of the registry is {kind!s:.20}, not {_KINDS[wanted]}"
        )
    return document


def _read(body: bytes, number: int) -> Any:
    document = _document(body, "AVRO", number)
    if document.get("references"):
        raise BadChangesError(
            f"schema {number} of the registry has references; register it as one schema"
        )
    try:
        return orjson.loads(document["schema"])
    except ValueError as exc:
        raise BadChangesError(f"schema {number} of the registry is not JSON") from exc
