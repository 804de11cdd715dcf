"""Configures how the process shares its cores among statements."""

import os
import threading

from caraway_core.process import cores

_STACK_BYTES = 64 * 1024 * 1024
"""The stack size of a thread. Only the part in use takes memory."""


def prepare() -> None:
    """Size the engine's thread pool, and shorten turns; call this before the engine is first used.

    One thread per core: with more, TPC-H takes 15 % longer on two cores. Joins that occupy threads
    after cancellation are limited elsewhere: docs/decisions/0002-cancellation.md.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(max(2, cores.available())))
    # Plans are walked recursively; docs/decisions/0031 has what the largest ones need.
    os.environ.setdefault("RUST_MIN_STACK", str(_STACK_BYTES))
    threading.stack_size(_STACK_BYTES)
    cores.take_short_turns()
