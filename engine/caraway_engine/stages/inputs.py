"""How a fragment names the exchanges that it reads."""

from caraway_core.protocols.dispatch import GIVEN_SCHEMA

INPUT_SCHEMA = GIVEN_SCHEMA
"""The schema of every input: a read of one is `[INPUT_SCHEMA, INPUT_PREFIX + name]`."""
INPUT_PREFIX = "@caraway-input-@"
"""Stands where each run puts a token of its own, of the same length, so that no two runs meet."""
