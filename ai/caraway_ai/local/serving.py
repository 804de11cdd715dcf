"""The process of one local model: `python -m caraway_ai.local.serving JSON`.

It serves the OpenAI wire on a Unix socket until it is killed. Nothing of the runtime is imported.
"""

import json
import os
import resource
import signal
import sys
from typing import Any


def main(options: dict[str, Any]) -> None:
    """Load the model, report that it is loaded, and serve."""
    if options["memory_bytes"] is not None:
        # Allocated memory; the file of the model is mapped, and does not count.
        resource.setrlimit(resource.RLIMIT_DATA, (options["memory_bytes"],) * 2)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["file"]
    params.hostnames = [options["socket"]]
    params.api_keys = [options["key"]]
    params.n_parallel = options["parallel"]
    params.n_ctx = options["context_length"] * options["parallel"]
    params.n_gpu_layers = options["gpu_layers"]
    params.cpuparams.n_threads = options["threads"]
    params.chat_template = options["chat_template"]
    params.ui = False
    params.offline = True
    params.endpoint_slots = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    with os.fdopen(options["ready_fd"], "wb") as ready:
        ready.write(b"ready\n")
    signal.sigwait({signal.SIGTERM})
    del server


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main(json.loads(sys.argv[1]))
