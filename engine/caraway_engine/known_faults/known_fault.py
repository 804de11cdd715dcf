"""The definition of a known fault of DataFusion."""

from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    """The protection of users from a fault."""

    REWRITTEN = "the statement is rewritten"
    GUARDED = "a check of the values fails the statement"
    REFUSED = "the statement is refused"
    SET = "an engine setting is changed"
    PLANNED = "the plan is changed"
    READ = "rows are changed as they are read"


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A fault and its remedy.

    `statement` is the smallest one that shows it, over the tables of its tests. `upstream` are
    issues and pull requests as `repository#number`; empty if none was found. `fixed_by` is a
    change that was merged after the newest version in `seen_in`: a release with it drops the
    remedy. Without it, the first version over which the tests of the fault fail does. `shown_in`
    is the module of its tests if the statement alone does not show it.
    """

    name: str
    sentence: str
    remedy: Remedy
    statement: str
    upstream: tuple[str, ...] = ()
    fixed_by: str = ""
    seen_in: tuple[str, ...] = ("55.0.0",)
    shown_in: str = ""
