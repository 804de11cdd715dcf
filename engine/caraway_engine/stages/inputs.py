"""Names of exchanges in a fragment's plan."""

from caraway_core.statements import GIVEN_SCHEMA

INPUT_SCHEMA = GIVEN_SCHEMA
"""The schema of every input. A read of an input names `[INPUT_SCHEMA, INPUT_PREFIX + name]`."""
INPUT_PREFIX = "@caraway-input-@"
"""A placeholder. Each run replaces it by a token of the same length, so that runs stay apart."""
