"""Characters: which end a word, which carry accents, which belong to scripts without spaces."""

import unicodedata

WORD_BREAK = r"[^\p{L}\p{N}\p{M}'\x{2019}]+"
"""The characters between two words, as an expression of RE2."""
APOSTROPHES = "'\u2019"
_MOST_MARKS = 30

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3130, 0x318F),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
# Letters that Unicode does not decompose, and the ones that people type in their place.
_LETTERS = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h",
        "\u0131": "i", "ŋ": "n", "ŧ": "t", "\u0451": "\u0435",  # dotless i, yo
    }
)  # fmt: skip


def is_unspaced(character: str) -> bool:
    """True if the character belongs to a script that puts no spaces between words."""
    code = ord(character)
    return code >= 0x0E00 and any(first <= code <= last for first, last in _UNSPACED)


def is_word_character(character: str) -> bool:
    """True if the character is a letter, a mark or a digit."""
    return unicodedata.category(character)[0] in "LNM"


def fold(word: str) -> str:
    """A word without differences of case, width and accents.

    Accents are removed from Latin and Greek letters, and points from Hebrew and Arabic ones. Other
    marks are part of their letters, as in Devanagari and in the Cyrillic й.
    """
    if word.isascii():
        return word.lower()
    text = _bounded(word.casefold().translate(_LETTERS))
    kept: list[str] = []
    base = ""
    for character in unicodedata.normalize("NFKD", text):
        if not unicodedata.combining(character):
            base = character
        elif _is_accent(base, character):
            continue
        kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept)).casefold().translate(_LETTERS)


def _bounded(word: str) -> str:
    """Return a word with at most 30 marks in a row: ordering them takes the square of their number.

    30 is the limit of Unicode's stream-safe text format; no language has more.
    """
    if len(word) <= _MOST_MARKS:
        return word
    kept: list[str] = []
    marks = 0
    for character in word:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _is_accent(base: str, mark: str) -> bool:
    code = ord(mark)
    if 0x0591 <= code <= 0x05C7 or 0x064B <= code <= 0x0652 or code == 0x0670:
        return True
    return 0x0300 <= code <= 0x036F and (base < "\u0400" or "\u1e00" <= base < "\u2000")
