"""A double of panics of native code."""


class Panic(BaseException):
    """A panic as PyO3 raises it, which is not an `Exception`."""
