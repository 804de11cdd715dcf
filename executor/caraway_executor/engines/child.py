"""The life of an engine process, from its fork to its end."""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import threading

import uvloop

from caraway_core.channels.channel import Channel
from caraway_core.process import logs
from caraway_engine.execution import processes
from caraway_executor.engines import served
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.serving import Serving
from caraway_executor.engines.shared_memory import WritableMemory
from caraway_executor.engines.threads import CallThreads
from caraway_executor.resources import ceilings

STACK_BYTES = 256 * 1024 * 1024
"""The stack size of threads that plan or run statements. Only the part in use takes memory."""
_BACKSTOP_BYTES = 4 * 1024**3
_SET_DEATH_SIGNAL = 1
_PLANNING_THREADS = 8


def prepare() -> None:
    """Configure what must be set before the engine is first used; forked processes inherit it."""
    processes.prepare()
    os.environ["RUST_MIN_STACK"] = str(STACK_BYTES)
    # Searches run side by side. Each is a few small products, for which threads cost more than they
    # give: they wait for each other in loops.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    threading.stack_size(STACK_BYTES)
    # Existing objects are never freed, so the collector need not visit them and copy their pages.
    gc.collect()
    gc.freeze()


def run(options: EngineOptions, channel: socket.socket, memory: int | None) -> int:
    """Serve until the other end of the channel is closed; return the exit code.

    `memory` is the descriptor of memory that is shared with the other end.
    """
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(options.niceness)
    ceilings.be_first_to_go()
    _bound_memory(options.memory_bytes)
    logs.configure(options.log_format, options.log_level)
    # The main thread has the system's stack size, which dropping a deep plan would overflow.
    thread = threading.Thread(target=_serve, args=(options, channel, memory), name="engine")
    thread.start()
    thread.join()
    return 0


def _serve(options: EngineOptions, end: socket.socket, memory: int | None) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_channel(options, end, memory))
    # Threads of the engine may never end, and nothing is left to be written.
    sys.stderr.flush()
    os._exit(0)


async def _serve_channel(options: EngineOptions, end: socket.socket, memory: int | None) -> None:
    lost = asyncio.Event()
    threads = CallThreads(_PLANNING_THREADS, "planning")
    shared = None if memory is None else WritableMemory(memory)
    serving = Serving(served.make(options, threads), threads, shared)
    serving.channel = await Channel.open(end, serving.receive, lost.set)
    serving.greet()
    await lost.wait()
    serving.close()


def _end_with_parent() -> None:
    """Make the system kill this process with the fork server, even if that is killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL) != 0 or os.getppid() == 1:
        os._exit(1)


def _bound_memory(memory_bytes: int | None) -> None:
    """Limit what can be allocated between two checks of the watcher, including stacks."""
    if memory_bytes is None:
        return
    most = memory_bytes + _BACKSTOP_BYTES + 32 * STACK_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
