"""Prepared statements: kept for the principal that made them, until they are closed or idle."""

import secrets
import time
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import OverloadedError
from caraway_core.ids import PrincipalId
from caraway_core.sqltext.placeholders import Placeholders
from caraway_serving.flight import statuses

IDLE_S = 3600.0
MOST = 1_000
MOST_BYTES = 256 * 1024 * 1024
_HANDLE_BYTES = 16


@dataclass(slots=True)
class PreparedStatement:
    """A statement, its placeholders, and the rows that are bound to them."""

    sql: str
    principal: PrincipalId
    found: Placeholders
    rows: pa.Table | None = None

    @property
    def size_bytes(self) -> int:
        """The memory that the statement keeps, in bytes."""
        return len(self.sql) + (self.rows.nbytes if self.rows is not None else 0)


class PreparedStatements:
    """All that are open. `clock` is in seconds; threads may use it at once."""

    def __init__(
        self,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        self.quota: Quota[str] = Quota(
            "prepared statements",
            QuotaLimits(most_each=most, most_bytes_each=most_bytes),
            kept_s=IDLE_S,
            may_go=lambda _handle: False,
            clock=clock,
        )
        self._most_mib = most_bytes >> 20
        self._lock = Lock()
        self._open: dict[str, PreparedStatement] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, statement: PreparedStatement) -> str:
        """Keep a statement, and return its handle.

        Raises:
            Unavailable: the principal has too many.
        """
        handle = secrets.token_hex(_HANDLE_BYTES)
        with self._lock:
            self._forget_idle()
            try:
                self.quota.add(statement.principal, handle, statement.size_bytes)
            except OverloadedError as exc:
                raise statuses.Unavailable(
                    f"this key may have {self.quota.limits.most_each} prepared statements, and "
                    f"{self._most_mib} MiB of statements and parameters; close some, or wait "
                    f"until they have been idle for {IDLE_S:.0f} s"
                ) from exc
            self._open[handle] = statement
            return handle

    def find(self, handle: str, principal: PrincipalId) -> PreparedStatement:
        """Return a statement of a principal.

        Raises:
            NotFound: it has none by this handle.
        """
        with self._lock:
            self._forget_idle()
            statement = self._open.get(handle)
            if statement is None or statement.principal != principal:
                raise statuses.NotFound(
                    "there is no such prepared statement: it was closed, was idle for too long, "
                    "or belongs to another key; prepare it again"
                )
            self.quota.use(handle)
            return statement

    def bind(self, handle: str, principal: PrincipalId, rows: pa.Table) -> None:
        """Bind rows of parameters in place of those that were bound before.

        Raises:
            Unavailable: the statements of the principal would keep too much memory.
        """
        statement = self.find(handle, principal)
        with self._lock:
            try:
                self.quota.add(principal, handle, len(statement.sql) + rows.nbytes)
            except OverloadedError as exc:
                self.quota.add(principal, handle, statement.size_bytes)
                raise statuses.Unavailable(
                    f"the parameters bound by this key need more than {self._most_mib} MiB; bind "
                    "fewer rows at once, or close prepared statements"
                ) from exc
            statement.rows = rows

    def close(self, handle: str, principal: PrincipalId) -> None:
        """Forget a statement; one that is not there is closed already."""
        with self._lock:
            statement = self._open.get(handle)
            if statement is not None and statement.principal == principal:
                self.quota.drop(handle)
                del self._open[handle]

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self.quota.clear()
            self._open.clear()

    def _forget_idle(self) -> None:
        for handle in self.quota.drop_idle():
            del self._open[handle]
