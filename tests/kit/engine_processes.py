"""Engine processes for tests."""

import atexit
import functools

from caraway_executor.engines.starting import ForkServer


@functools.cache
def fork_server() -> ForkServer:
    """Return the fork server that all tests of this process share, because it starts slowly."""
    server = ForkServer(is_shared=True)
    atexit.register(server.close)
    return server
