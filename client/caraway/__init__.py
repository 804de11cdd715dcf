"""The `caraway` command and the Python client: what a user starts, and what asks a runtime.

Only `caraway_core` may be imported here; the runtime's own commands are loaded by name when they
are asked for, so that `pip install caraway` without extras is a complete client.
"""
