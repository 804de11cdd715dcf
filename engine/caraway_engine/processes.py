"""How this process shares its cores among statements."""

import os

_WORKERS_PER_CORE = 8


def prepare() -> None:
    """Size the engine's thread pool; must be called before the engine's first use.

    Some joins do not yield until a batch is full, also after they were cancelled, and each holds
    as many worker threads as the statement has partitions meanwhile. With a thread a core (the
    default) one such statement stops every other one; with more, the operating system shares
    the cores, and TPC-H is no slower: docs/decisions/0002-cancellation.md.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(_WORKERS_PER_CORE * (os.cpu_count() or 1)))
