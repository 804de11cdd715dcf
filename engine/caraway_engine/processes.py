"""How this process shares its cores among statements."""

import os

from caraway_core import cores


def prepare() -> None:
    """Size the engine's thread pool; must be called before the engine's first use.

    A thread a core: with more, TPC-H takes 15 % longer on two cores. Joins that would hold a thread
    long after they were cancelled are bounded elsewhere: docs/decisions/0002-cancellation.md.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(max(2, cores.available())))
