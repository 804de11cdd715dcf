"""Ends a node whose cluster is gone; runs in the `ray start` of each node that joins.

A head without Redis that replaces another one begins another cluster at the same address. Ray's
own processes try to reach the previous cluster for minutes. So a thread asks the head with the
cluster id of the node. If the head refuses the id, it exits `ray start`, and with it the node; the
process that started the node joins the new cluster.
"""

import os
import sys
import threading
import time
from collections.abc import Callable

CODE = 71
"""The exit code of a node whose cluster is gone."""
ASK_S = 3.0
_PAUSE_S = 2.0
_REFUSED = "WrongClusterID"
"""Ray has no class and no code of its own for this answer."""

Ask = Callable[[], object]
"""Asks the head with the cluster id of the node; fails without an answer within `ASK_S`."""


def begin(connect: Callable[[], Ask]) -> None:
    """Watch the cluster of a node in a thread; `connect` does not wait for the head."""

    def watch() -> None:
        try:
            wait_until_gone(connect())
        except BaseException as exc:  # noqa: BLE001 -- the watch must not end a node
            # A defect of the watch must not end a node that works.
            print(f"the watch of the cluster failed: {exc!r}", file=sys.stderr, flush=True)
            return
        print("error: the head is that of another cluster", file=sys.stderr, flush=True)
        os._exit(CODE)

    threading.Thread(target=watch, name="cluster-watch", daemon=True).start()


def wait_until_gone(ask: Ask, sleep: Callable[[float], None] = time.sleep) -> None:
    """Return when the head refuses the cluster id; a head that is silent may come back."""
    while True:
        try:
            ask()
        except Exception as exc:  # noqa: BLE001 -- a silent head may come back
            if _REFUSED in str(exc):
                return
        sleep(_PAUSE_S)
