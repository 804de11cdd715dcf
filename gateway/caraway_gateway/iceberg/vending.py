"""Temporary credentials for the files of one table. Its functions block."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from caraway_core.errors import UnavailableError
from caraway_core.tables import StoreSpec
from caraway_gateway.iceberg import loaded_tables
from caraway_plugins import sts
from caraway_plugins.sts import TemporaryKeys, TokenServiceError

_SECONDS = 3600
_LEFT = timedelta(minutes=15)
"""Credentials with less time are not given out any more."""
_MOST_POLICY = 2048
"""Characters of a policy that a token service takes."""
_MOST_KEPT = 256
_ESCAPED = str.maketrans({"*": "${*}", "?": "${?}", "$": "${$}"})


@dataclass(frozen=True, slots=True)
class OpenedPart:
    """Objects of a bucket: those below a folder, which ends in `/`, or one."""

    store: StoreSpec
    path: str

    @property
    def arn(self) -> str:
        """The objects as a policy names them; its wildcards do not occur in names."""
        region = self.store.options.get("region", "")
        own = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
        partition = next((name for start, name in own.items() if region.startswith(start)), "aws")
        path = self.path.translate(_ESCAPED)
        rest = "*" if self.path.endswith("/") else ""
        return f"arn:{partition}:s3:::{self.store.bucket}/{path}{rest}"

    @property
    def prefix(self) -> str:
        """The objects as clients look for their credentials."""
        return f"s3://{self.store.bucket}/{self.path}"


def parts(store: StoreSpec, locations: Iterable[str]) -> list[OpenedPart]:
    """Return what has some files, and as little as possible besides: each one, or their folder.

    Files that are in no folder are opened only if they are few.
    """
    start = f"s3://{store.bucket}/"
    paths = sorted({each.removeprefix(start) for each in locations if each.startswith(start)})
    single = [OpenedPart(store, each) for each in paths[:_MOST_POLICY]]
    if len(paths) == len(single) and len(policy(single)) <= _MOST_POLICY // 2:
        return single
    folder = _folder(paths)
    return [OpenedPart(store, f"{folder}/")] if folder else []


def _folder(paths: Sequence[str]) -> str:
    """Return the deepest folder that has all objects."""
    shared = []
    for steps in zip(*(each.split("/")[:-1] for each in paths), strict=False):
        if len(set(steps)) > 1:
            break
        shared.append(steps[0])
    return "/".join(shared)


def policy(opened: Sequence[OpenedPart]) -> str:
    """Return the policy that lets clients read objects only."""
    statement = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": [each.arn for each in opened],
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":"))


class VendedKeys:
    """Makes temporary credentials, and keeps them for as long as clients can use them."""

    def __init__(self, role_arn: str, endpoint: str | None) -> None:
        self._role_arn = role_arn
        self._endpoint = endpoint
        self._kept: dict[tuple[Any, ...], TemporaryKeys] = {}
        self._making = threading.Lock()

    def credentials(self, opened: Sequence[OpenedPart]) -> list[dict[str, Any]]:
        """Return the credentials of some objects, as the protocol has them.

        Stores without keys get none, nor do objects with names that are too long for a policy.

        Raises:
            UnavailableError: the token service gives none.
        """
        groups: dict[tuple[str, ...], list[OpenedPart]] = {}
        for each in opened:
            if sts.has_keys(each.store):
                groups.setdefault(_identity(each.store), []).append(each)
        found = []
        for group in groups.values():
            if len(policy(group)) > _MOST_POLICY:
                continue
            config = {**loaded_tables.config(group[0].store), **_config(self._keys(group))}
            found += [{"prefix": each.prefix, "config": config} for each in group]
        return found

    def _keys(self, opened: Sequence[OpenedPart]) -> TemporaryKeys:
        store, text = opened[0].store, policy(opened)
        name = *_identity(store), text
        with self._making:
            kept = self._kept.get(name)
            if kept is not None and kept.ends_at - datetime.now(UTC) > _LEFT:
                return kept
            try:
                keys = sts.assume(store, self._role_arn, text, _SECONDS, self._endpoint)
            except TokenServiceError as exc:
                raise UnavailableError(f"there are no temporary credentials: {exc}") from exc
            if len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[name] = keys
            return keys


def _identity(store: StoreSpec) -> tuple[str, ...]:
    names = ("access_key_id", "secret_access_key", "session_token", "endpoint", "region")
    return tuple(store.options.get(each, "") for each in names)


def _config(keys: TemporaryKeys) -> Mapping[str, str]:
    return {
        "s3.access-key-id": keys.key_id,
        "s3.secret-access-key": keys.secret,
        "s3.session-token": keys.token,
        "s3.session-token-expires-at-ms": str(int(keys.ends_at.timestamp() * 1000)),
    }
