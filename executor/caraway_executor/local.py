"""The executor that lives in the process of the scheduler."""

import asyncio
import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from caraway_core.errors import ShuttingDownError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, CatalogSnapshot, Statement
from caraway_engine import processes
from caraway_engine.sessions import EngineSettings, Session
from caraway_executor.products import Products

_PLANNING_THREADS = 8


class LocalExecutor:
    """Runs statements with the engine of this process.

    A new snapshot becomes a new session; statements under way keep the one they started in, so
    nothing they read is taken from under them.
    """

    def __init__(self, settings: EngineSettings) -> None:
        processes.prepare()
        self._settings = settings
        self._session: Session | None = None
        self._products = Products(max(1, settings.target_partitions - 1))
        # Planning lists files and may block on a remote store; its threads are its own, so that
        # slow planning never starves the encoding of answers.
        self._planning = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")

    def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        session = Session(self._settings, snapshot)
        failed = session.install(self._session)
        self._session = session
        return failed

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        session = self._session
        if session is None:
            raise ShuttingDownError("the executor holds no catalog yet")
        loop = asyncio.get_running_loop()
        stream = await loop.run_in_executor(self._planning, session.start, statement)
        if stream.is_product:
            await self._products.enter()
            stream.on_end = partial(self._leave_product, loop)
        return stream

    def _leave_product(self, loop: asyncio.AbstractEventLoop, is_whole: bool) -> None:
        # A stream may be dropped by any thread, also after the loop has been closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._products.leave, is_whole)

    def close(self) -> None:
        self._products.close()
        self._planning.shutdown(wait=False, cancel_futures=True)
        self._session = None
