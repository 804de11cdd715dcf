"""A stand-in for panics of native code."""


class Panic(BaseException):
    """As PyO3 raises it: it is no `Exception`."""
