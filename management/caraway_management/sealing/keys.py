"""The key-encryption keys: where they are kept, and which one seals new data keys."""

import base64
import binascii
import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from caraway_core.errors import CarawayError

ENVIRONMENT = "CARAWAY_MANAGEMENT_KEYS"
FILE_NAME = "management.keys"
KEY_BYTES = 32
_LINE = re.compile(r"([A-Za-z0-9._-]{1,64}):(\S+)")
_FORM = "each line must be ID:KEY, where KEY is 32 bytes in base64"
_MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class KeySet:
    """Keys by id. The last one of a file seals new data keys."""

    keys: Mapping[str, bytes]
    current_id: str


class KeyFile:
    """Keys in a file with one `ID:KEY` per line. The file is read again whenever it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> KeySet:
        """Read the keys.

        Raises:
            CarawayError: the file cannot be read, or has no valid keys.
        """
        try:
            with self._path.open(encoding="ascii") as opened:
                text = opened.read(_MOST_BYTES)
        except OSError as exc:
            raise CarawayError(
                f"cannot read the key file: {exc.strerror}; set --key-file to a file of which "
                f"{_FORM}"
            ) from exc
        except UnicodeDecodeError as exc:
            raise CarawayError(f"the key file is no text; {_FORM}") from exc
        return parse(text, "the key file")

    def make(self) -> None:
        """Write a file with one new key that only this user can read, unless the file exists.

        Raises:
            CarawayError: the file cannot be written.
        """
        with self._draft(new_line()) as draft, contextlib.suppress(FileExistsError):
            # A link never replaces a file, so if two processes make the file, one of them wins.
            os.link(draft, self._path)

    def add(self) -> str:
        """Add a new key, which seals from then on, and return its id.

        Raises:
            CarawayError: the file cannot be read or written.
        """
        self.load()
        with self._writing():
            text = self._path.read_text().rstrip("\n")
        line = new_line()
        with self._draft(f"{text}\n{line}") as draft:
            draft.replace(self._path)
        return line.partition(":")[0]

    @contextlib.contextmanager
    def _draft(self, text: str) -> Iterator[Path]:
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}")
        with self._writing():
            try:
                with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                    out.write(f"{text}\n")
                    out.flush()
                    os.fsync(out.fileno())
                yield draft
            finally:
                draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise CarawayError(f"cannot write the key file: {exc.strerror}") from exc


class GivenKeys:
    """Keys that were given as text, such as by the environment."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    def load(self) -> KeySet:
        """Return the keys."""
        return self._keys


KeySource = KeyFile | GivenKeys


def source_of(
    folder: Path | None, key_file: Path | None, environment: Mapping[str, str]
) -> KeySource:
    """Return where the keys are: `--key-file`, the environment, or a file in a data directory,
    which is made there.

    Raises:
        CarawayError: there is no such file, or it cannot be made; or nothing is given, and there is
            no data directory.
    """
    if key_file is not None:
        return KeyFile(key_file)
    if given := environment.get(ENVIRONMENT, "").split():
        return GivenKeys(parse("\n".join(given), ENVIRONMENT))
    if folder is None:
        raise CarawayError(
            f"no keys seal what the database keeps; set --key-file to a file of which {_FORM}, "
            "the same for all instances"
        )
    file = KeyFile(folder / FILE_NAME)
    file.make()
    return file


def parse(text: str, source: str) -> KeySet:
    """Read keys from text. `source` is what messages call it.

    Raises:
        CarawayError: a line is wrong, an id occurs twice, or there is none.
    """
    keys: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        key = _decode(match[2]) if match else None
        if match is None or key is None:
            raise CarawayError(f"line {number} of {source} is not a key; {_FORM}")
        if match[1] in keys:
            raise CarawayError(f"{source} has the key '{match[1]}' twice")
        keys[match[1]] = key
    if not keys:
        raise CarawayError(f"{source} has no keys; {_FORM}")
    return KeySet(keys, next(reversed(keys)))


def new_line() -> str:
    """Return a new key with an id, as a line of a key file."""
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return f"k{secrets.token_hex(4)}:{key}"


def _decode(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None
