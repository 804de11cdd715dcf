"""How long to wait before trying a dataset again."""

_LONGEST_S = 60.0


def delay_s(attempts: int, jitter: float) -> float:
    """Double from one second to a minute; `jitter` in [0, 1) spreads it by up to a fifth."""
    return float(min(2 ** max(attempts - 1, 0), _LONGEST_S)) * (1 + jitter / 5)
