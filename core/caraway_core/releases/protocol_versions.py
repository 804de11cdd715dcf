"""The versions of the protocols between operator, schedulers and executors.

A release speaks its own version and the one before, so that the processes of a cluster can be
replaced one after another. Peers without a common version are refused.

Messages stay readable in both directions by these rules:

- A field is only added at the end of a message, with a default, and its class is `growing`. A
  process of the version before drops the field; what that process sends gets the default.
- A new method, or a new kind of answer, is used only with peers that speak the new version.
- A process of the version before must not answer wrongly without a field. It may fail: settings
  that are new are for manifests after a rollout.
- The class of the executor's actor has no method, private ones included, that the version before
  does not have: Ray names them all, and a scheduler that lacks one cannot call the executor.
- Nothing is renamed, moved or removed that the version before sends or reads. That includes the
  types in the annotations of the actor's methods, which Ray pickles with the class.

  17  statements and tasks have trace ids; executors say the newest version that they speak; tables
      of files have names of columns of their own, and decimal separators; executors answer calls by
      name over channels (one of version 16 closes the channel, and is reached with the head only),
      and say that they run tasks there; writes have the mark of their commit (executors of version
      16 write to no lakes), and columns of databases the name of one that is not checked
"""

from dataclasses import MISSING, dataclass, fields
from typing import Any, Self, TypeVar

PROTOCOL_VERSION = 17
"""Increment with the first change of messages after a release."""
HEADER = "Caraway-Protocol"
"""The header with the spoken versions, in requests of operators and in their answers."""
_BEFORE_RANGES = 16
"""The last version whose processes did not say a range."""
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class ProtocolVersions:
    """The versions that a process speaks, without gaps."""

    oldest: int
    newest: int

    def common(self, other: "ProtocolVersions") -> int | None:
        """Return the newest version that both speak, or None."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None

    @property
    def header(self) -> str:
        """The value of the header, such as `16-17`."""
        return f"{self.oldest}-{self.newest}"

    @classmethod
    def of_header(cls, text: str | None) -> Self:
        """Parse a header; without one that can be read, the peer is of the time before headers."""
        oldest, _, newest = (text or "").partition("-")
        if len(oldest) < 10 and len(newest) < 10 and oldest.isdecimal() and newest.isdecimal():
            return cls(int(oldest), int(newest))
        return cls(_BEFORE_RANGES, _BEFORE_RANGES)

    def __str__(self) -> str:
        if self.oldest == self.newest:
            return f"version {self.newest} of the protocol"
        return f"versions {self.oldest} to {self.newest} of the protocol"


SPOKEN = ProtocolVersions(PROTOCOL_VERSION - 1, PROTOCOL_VERSION)
"""The versions that this release speaks."""


def mismatch(peer: str, theirs: ProtocolVersions, own: str) -> str:
    """Return the message for a peer without a common version; `own` names this process."""
    return f"{peer} speaks {theirs}, {own} {SPOKEN}; upgrade and downgrade in steps of one release"


def growing(cls: _Class) -> _Class:
    """Let messages of the version before be read, whose last fields are missing: defaults apply.

    Decorate a frozen dataclass with slots, above `@dataclass`.
    """

    # Any: a message, and the values of its fields, as `dataclass` pickles them.
    def set_state(self: Any, state: list[object]) -> None:
        known = fields(self)
        for field, value in zip(known, state, strict=False):
            object.__setattr__(self, field.name, value)
        for field in known[len(state) :]:
            made = field.default_factory
            value = field.default if made is MISSING else made()
            object.__setattr__(self, field.name, value)

    cls.__setstate__ = set_state  # type: ignore[attr-defined]
    return cls
