"""Seals and opens values."""

import asyncio
import base64
import binascii
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError
from caraway_management.sealing.keys import KEY_BYTES, KeySet, KeySource
from caraway_management.store.tables import DataKey

_FORMAT = "s1"
_NONCE_BYTES = 12


class SealedError(CarawayError):
    """A sealed value cannot be opened: its key is missing, or the value was changed."""


class Sealer:
    """Seals values with a data key of the database, which a key-encryption key seals.

    A value is bound to its place: what was sealed for one place cannot be opened for another one,
    so that rows of a database cannot be swapped.
    """

    def __init__(self, source: KeySource, now: DateClock) -> None:
        self._source = source
        self._now = now
        self._keys: KeySet | None = None

    async def seal(self, session: AsyncSession, plaintext: str, place: str = "") -> str:
        """Return a value sealed for a place, such as `secret/<org>/<project>/<name>`.

        Raises:
            CarawayError: the keys cannot be read.
        """
        row = await self._data_key(session)
        key = await self._open_key(row)
        # Databases and JSON keep any text, lone surrogates included.
        sealed = _encrypt(key, plaintext.encode(errors="surrogatepass"), _bound(row.id, place))
        return f"{_FORMAT}.{row.id}.{_text(sealed)}"

    async def open(self, session: AsyncSession, sealed: str, place: str = "") -> str:
        """Return the value that was sealed for a place.

        Raises:
            SealedError: it was sealed for another place, was changed, or its key is missing.
        """
        form, _, rest = sealed.partition(".")
        number, _, text = rest.partition(".")
        if form != _FORMAT or not (number.isascii() and number.isdecimal() and len(number) < 19):
            raise SealedError("a sealed value is damaged")
        row = await session.get(DataKey, int(number))
        if row is None:
            raise SealedError(f"the data key {number} of a sealed value is missing")
        plaintext = _decrypt(await self._open_key(row), _bytes(text), _bound(row.id, place))
        if plaintext is None:
            raise SealedError("a sealed value is damaged, or belongs to another place")
        return plaintext.decode(errors="surrogatepass")

    async def check(self, session: AsyncSession) -> None:
        """Check that the keys of everything that is sealed are present.

        Raises:
            CarawayError: one is missing or wrong; the message has its id.
        """
        await self._load()
        for row in await session.scalars(select(DataKey)):
            await self._open_key(row)

    async def rotate(self, session: AsyncSession) -> str:
        """Seal all data keys with the last key of the source, and use a new one from now on.

        Values that are sealed already stay as they are, and can be opened at any time meanwhile.
        Returns the id of the key-encryption key.

        Raises:
            CarawayError: a key that still seals something is missing.
        """
        keys = await self._load()
        rows = list(await session.scalars(select(DataKey).order_by(DataKey.id).with_for_update()))
        for row in rows:
            key = await self._open_key(row)
            row.wrapped = _wrap(keys, keys.current_id, key)
            row.key_encryption_key_id = keys.current_id
            row.retired_at = row.retired_at or self._now()
        await self._add_data_key(session)
        return keys.current_id

    async def _data_key(self, session: AsyncSession) -> DataKey:
        """Return the newest data key, which seals. It is always read: a remembered one may be of a
        transaction that was rolled back.
        """
        query = select(DataKey).where(DataKey.retired_at.is_(None)).order_by(DataKey.id.desc())
        key = await session.scalar(query.limit(1))
        return key or await self._add_data_key(session)

    async def _add_data_key(self, session: AsyncSession) -> DataKey:
        keys = await self._load()
        key = secrets.token_bytes(KEY_BYTES)
        row = DataKey(
            key_encryption_key_id=keys.current_id, wrapped=_wrap(keys, keys.current_id, key),
            created_at=self._now(),
        )  # fmt: skip
        session.add(row)
        await session.flush()
        return row

    async def _open_key(self, row: DataKey) -> bytes:
        id_ = row.key_encryption_key_id
        keys = self._keys
        if keys is None or id_ not in keys.keys:
            # Another instance may have used a key that was added to the source meanwhile.
            keys = await self._load()
        if id_ not in keys.keys:
            raise SealedError(
                f"the key-encryption key '{id_}' is missing; add it to the key file again"
            )
        key = _decrypt(keys.keys[id_], _bytes(row.wrapped), _kek_bound(id_))
        if key is None:
            raise SealedError(
                f"the key-encryption key '{id_}' is not the one that sealed the data key {row.id}; "
                "put the one with this id from then into the key file"
            )
        return key

    async def _load(self) -> KeySet:
        self._keys = await asyncio.to_thread(self._source.load)
        return self._keys


def _wrap(keys: KeySet, id_: str, key: bytes) -> str:
    return _text(_encrypt(keys.keys[id_], key, _kek_bound(id_)))


def _kek_bound(id_: str) -> bytes:
    return f"{_FORMAT}/data-key/{id_}".encode()


def _bound(data_key: int, place: str) -> bytes:
    return f"{_FORMAT}/{data_key}/{place}".encode(errors="surrogatepass")


def _encrypt(key: bytes, plaintext: bytes, bound: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plaintext, bound)


def _decrypt(key: bytes, sealed: bytes, bound: bytes) -> bytes | None:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):
        return None


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
