"""Runs Ray's command line without the commands for services, jobs and states, which are not used.

Their imports, with FastAPI and pandas where there is one, were three quarters of the processor time
of `ray start`. Ray takes each group of commands that cannot be imported for one not installed.
"""

import runpy
import sys

_UNUSED = ("ray.serve.scripts", "ray.dashboard.modules.job.cli", "ray.util.state.state_cli")


def main() -> None:
    """Run Ray's command line with the arguments of this process."""
    for name in _UNUSED:
        # An import of such a module fails with ImportError.
        sys.modules[name] = None  # type: ignore[assignment] # this is how Python bars a module
    runpy.run_module("ray.scripts.scripts", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
