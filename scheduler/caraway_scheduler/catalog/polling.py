"""The intervals at which sources are asked whether their data changed; pure functions."""

_LONGEST_S = 30.0
_MOST_OF_TIME = 0.02
"""The part of the time that a source is being asked, at most."""


def period_s(usual_s: float, took_s: float = 0.0) -> float:
    """Return the seconds until a source is asked again, when it took some to answer.

    `usual_s` is what the source declares.

    A folder of ten thousand files takes a tenth of a second of Python code, and much longer beside
    threads that want their turn; asked every second, it would slow statements.
    """
    return max(usual_s, min(took_s / _MOST_OF_TIME, _LONGEST_S))
