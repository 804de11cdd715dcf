"""How this process shares its cores among statements."""

import os

_WORKERS_PER_CORE = 8


def prepare() -> None:
    """Size the engine's thread pool; must be called before the engine's first use.

    Some joins do not yield until a batch is full, also after they were cancelled, and each holds
    a worker thread meanwhile. With a thread a core (the default), as many of these as there are
    cores would stop every other statement; with more, the system's scheduler shares the cores.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", str(_WORKERS_PER_CORE * (os.cpu_count() or 1)))
