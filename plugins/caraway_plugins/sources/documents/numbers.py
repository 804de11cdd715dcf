"""Numbers of documents that may have more digits than a double."""

from decimal import Decimal
from typing import Self

_SAFE = 2**53


class ExactNumber(Decimal):
    """A number that becomes a double only if this keeps its digits."""

    __slots__ = ()

    @property
    def is_double(self) -> bool:
        """True if the shortest text of a double is this number."""
        try:
            return Decimal(repr(super().__float__())) == self
        except ArithmeticError:
            return False

    def __float__(self) -> float:
        if not self.is_double:
            raise ValueError("it has more digits than a double")
        return super().__float__()

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)


def exact(value: int | str) -> int | ExactNumber:
    """Return a number; those that any column of numbers can hold are plain integers."""
    number = ExactNumber(value)
    if abs(number) <= _SAFE and number == (whole := int(number)):
        return whole
    return number
