"""Pages of sorted names, and the tokens that lead from one to the next."""

import base64
import binascii
from collections.abc import Sequence

from caraway_core.errors import InvalidRequestError

MOST_PER_PAGE = 1000


def page(
    items: Sequence[str], token: str | None, size: int | None
) -> tuple[Sequence[str], str | None]:
    """Return one page of sorted items, and the token of the next; without a token all of them.

    Raises:
        InvalidRequestError: the token is none of ours.
    """
    if token is None:
        return items, None
    after = _last(token)
    rest = [each for each in items if after is None or each > after]
    taken = rest[: size or MOST_PER_PAGE]
    return taken, _token(taken[-1]) if len(taken) < len(rest) else None


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(f"after:{last}".encode()).decode()


def _last(token: str) -> str | None:
    if not token:
        return None
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, UnicodeError, ValueError) as exc:
        raise _strange() from exc
    if not text.startswith("after:"):
        raise _strange()
    return text.removeprefix("after:")


def _strange() -> InvalidRequestError:
    return InvalidRequestError("query parameter 'pageToken' is not one that this server made")
