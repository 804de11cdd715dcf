"""Names that can be written as SQL identifiers without quotes."""

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
RESERVED = frozenset(
    "all analyse analyze and any array as asc asymmetric between both case cast check collate "
    "column constraint create cross current_catalog current_date current_role current_time "
    "current_timestamp current_user default deferrable desc distinct do else end except exists "
    "false fetch filter for foreign from full grant group having ilike in initially inner "
    "intersect interval into is join lateral leading left like limit localtime localtimestamp "
    "natural not null offset on only or order outer over partition placing primary qualify "
    "references right select session_user similar some struct symmetric table then to top "
    "trailing trim true union unique user using values variadic when where window with".split()
)
"""Words that mean something else where a name may be; in quotes they are names everywhere."""


def is_plain(name: str) -> bool:
    """Return whether a name needs no quotes."""
    return bool(_PLAIN.fullmatch(name)) and name not in RESERVED


def normalized(names: Sequence[str]) -> tuple[str, ...]:
    """Return a name without need of quotes for each name, all different.

    Names that are plain stay as they are. The others are lower case, with `_` in place of what is
    neither a letter nor a digit, and a number where another name is the same.
    """
    taken = {name for name in names if is_plain(name)}
    made = []
    seen = set[str]()
    for position, name in enumerate(names, start=1):
        if name in taken and name not in seen:
            seen.add(name)
            made.append(name)
            continue
        plain = _plain(name) or f"column_{position}"
        made.append(_free(plain, taken))
        taken.add(made[-1])
        seen.add(made[-1])
    return tuple(made)


def _plain(name: str) -> str:
    kept = "".join(each if _is_kept(each) else " " for each in name.lower())
    plain = "_".join(kept.split())
    return f"_{plain}" if plain[:1].isdecimal() or plain in RESERVED else plain


def _is_kept(character: str) -> bool:
    return character.isalpha() or (character.isascii() and character.isdecimal())


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
