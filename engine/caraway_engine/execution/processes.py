"""How this process shares its cores among statements."""

import os
import threading

from caraway_core import cores

_STACK_BYTES = 64 * 1024 * 1024
"""Only what a thread uses of it takes memory."""


def prepare() -> None:
    """Size the engine's thread pool; must be called before the engine's first use.

    A thread a core: with more, TPC-H takes 15 % longer on two cores. Joins that would hold a thread
    long after they were cancelled are bounded elsewhere: docs/decisions/0002-cancellation.md.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(max(2, cores.available())))
    # Plans are walked by recursion; see docs/decisions/0031 for what the largest ones need.
    os.environ.setdefault("RUST_MIN_STACK", str(_STACK_BYTES))
    threading.stack_size(_STACK_BYTES)
