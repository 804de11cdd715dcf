"""How often sources are asked whether their data changed; pure functions."""

from collections.abc import Mapping

_USUAL_S: Mapping[str, float] = {"file": 1.0}
_REMOTE_S = 30.0
_LONGEST_S = 30.0
_MOST_OF_TIME = 0.02
"""The part of the time that a source is being asked, at most."""


def period_s(connector: str, took_s: float = 0.0) -> float:
    """Return the seconds until a source is asked again, when it took some to answer.

    A folder of ten thousand files takes a tenth of a second of Python code, and much longer beside
    threads that want their turn; asked every second, it would slow statements.
    """
    usual_s = _USUAL_S.get(connector, _REMOTE_S)
    return max(usual_s, min(took_s / _MOST_OF_TIME, _LONGEST_S))
