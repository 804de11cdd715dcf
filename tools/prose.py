"""Counts texts with phrases that a reader has to decode, and long lines of documents.

`make check` runs it: each part of the repository has a ceiling in `tools/prose_ceilings.json`, and
ceilings only fall. `python -m tools.prose PART` shows what is counted in a part, and `--lower` sets
the ceilings to what was counted. Texts are docstrings, documentation of attributes and comments of
modules, and paragraphs of documents.
"""

import argparse
import ast
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = ROOT / "tools" / "prose_ceilings.json"
WIDTH = 100
Ceilings = dict[str, dict[str, int]]
_STEP, _LEAST = 5, 20
"""Ceilings are multiples of the first; one odd text in a small part is no reason to fail."""
# Of each pattern: the word that is searched for, and what to write instead.
PATTERNS = {
    r"\b[Tt](?:old|ells?)\b": "report, return, show, distinguish",
    r"\b[Ss]o (?:many|few|much)\b(?! (?:that|as))": "up to N, the number of",
    r"\A(?:What|Who|Whose|Whether|How|Whatever|Whoever)\b": "name the thing: subject, verb, object",
    r"\b[Ww]hat (?:is|are|was|were|it|they|he|she|its|their|no|each|one|people|users?)\b": "a noun",
    r"\b[Ss]tands?\b(?! (?:for|in for|up|by))": "is, is in, has",
    r"\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Nn]one but|[Nn]othing else)\b": "say who or what",
    r"\b(?:anew|made again|asked for)\b": "again, requested",
    r"(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer|more\b)": "is not a",
    r"\b(?:[Ww]orded|[Ww]ords (?:a|an|the|it)\b|[Bb]eside\b)": "generates SQL; next to, besides",
}
_ODD = re.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS))
_CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|\"[^\"\n]*\"", re.DOTALL)
_DIRECTIVE = re.compile(r"#+ ?(?:!|fmt:|noqa|type:|ruff:|pragma)")


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its place."""

    path: Path
    line: int
    content: str

    @property
    def odd(self) -> re.Match[str] | None:
        """The first odd phrase; code and quotations do not count."""
        return _ODD.search(_CODE.sub("x", self.content).strip())


def of_module(path: Path) -> Iterator[Text]:
    """Yield the docstrings, documentation of attributes and comments of a module."""
    source = path.read_text()
    for place, docstring in _docstrings(ast.parse(source).body, is_function=False):
        yield Text(path, place, docstring)
    begin, lines = 0, list[str]()
    for number, line in enumerate([*source.splitlines(), ""], 1):
        content = line.strip()
        if content.startswith("#") and not _DIRECTIVE.match(content):
            begin = begin if lines else number
            lines.append(content.lstrip("# "))
        elif lines:
            yield Text(path, begin, " ".join(lines))
            lines = []


def _docstrings(body: list[ast.stmt], *, is_function: bool) -> Iterator[tuple[int, str]]:
    for index, node in enumerate(body):
        match node:
            case ast.Expr(value=ast.Constant(value=str(content))):
                if index == 0 or not is_function:
                    yield node.lineno, content
            case ast.ClassDef():
                yield from _docstrings(node.body, is_function=False)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _docstrings(node.body, is_function=True)


def of_document(path: Path) -> Iterator[Text]:
    """Yield the paragraphs and list items of a document; tables and code do not count."""
    begin, lines, in_code = 0, list[str](), False
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        in_code ^= line.lstrip().startswith("```")
        is_prose = not in_code and not line.lstrip().startswith(("|", "#", "```", "<!--"))
        starts = bool(re.match(r"\s*(?:[-*]|\d+\.) ", line))
        if lines and (not line.strip() or not is_prose or starts):
            yield Text(path, begin, " ".join(lines))
            lines = []
        if is_prose and line.strip():
            begin = begin if lines else number
            lines.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).strip())


def long_lines(path: Path) -> Iterator[int]:
    """Yield the numbers of lines of prose in a document that are too long."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        is_prose = not in_code and not line.lstrip().startswith(("|", "#", "```"))
        if is_prose and len(line) > WIDTH and " " in line.strip()[:WIDTH]:
            yield number


@dataclass(frozen=True, slots=True)
class Count:
    """A part of the repository: its number of texts, the odd ones, and its long lines."""

    texts: int
    odd: int
    long: int

    @property
    def odd_of_1000(self) -> int:
        """Odd texts of a thousand, rounded up."""
        return math.ceil(1000 * self.odd / max(self.texts, 1))


def parts() -> dict[str, list[Path]]:
    """Return the files of each part."""
    found: dict[str, list[Path]] = {}
    for folder in sorted(ROOT.glob("*/caraway*")):
        if folder.is_dir() and folder.parent.name != "charts":
            found[folder.parent.name] = _modules(folder)
    found["executor/indexes"] = _modules(ROOT / "executor" / "caraway_executor" / "indexes")
    found["tests"] = _modules(ROOT / "tests")
    found["bench"] = _modules(ROOT / "bench")
    for folder in sorted((ROOT / "docs").iterdir()):
        if folder.is_dir():
            found[f"docs/{folder.name}"] = sorted(folder.rglob("*.md"))
    found["docs"] = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
    return found


def _modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if not path.name.endswith("_pb2.py"))


@cache
def texts_of(path: Path) -> tuple[Text, ...]:
    """Return the texts of a file."""
    return tuple(of_document(path) if path.suffix == ".md" else of_module(path))


def count(files: list[Path]) -> Count:
    """Count the texts of files."""
    texts = [text for path in files for text in texts_of(path)]
    long = sum(1 for path in files if path.suffix == ".md" for _ in long_lines(path))
    return Count(len(texts), sum(1 for text in texts if text.odd), long)


def exceeded(counts: dict[str, Count], ceilings: Ceilings) -> list[str]:
    """Return a message for each ceiling that is exceeded."""
    messages = []
    for part, counted in counts.items():
        ceiling = ceilings.get(part, {"odd_of_1000": 0, "long": 0})
        if counted.odd_of_1000 > ceiling["odd_of_1000"]:
            messages.append(
                f"{part}: {counted.odd_of_1000} of 1,000 texts have odd phrases, "
                f"{ceiling['odd_of_1000']} may; `python -m tools.prose {part}` shows them"
            )
        if counted.long > ceiling["long"]:
            messages.append(
                f"{part}: {counted.long} lines have over {WIDTH} characters, "
                f"{ceiling['long']} may; `python -m tools.prose {part}` shows them"
            )
    return messages


def lowered(counts: dict[str, Count], ceilings: Ceilings) -> Ceilings:
    """Return ceilings just above what was counted, and none above the old ones."""

    def step(value: int) -> int:
        return math.ceil(value / _STEP) * _STEP

    return {
        part: {
            "odd_of_1000": min(
                max(step(counted.odd_of_1000), _LEAST), old.get("odd_of_1000", 1000)
            ),
            "long": min(step(counted.long), old.get("long", 1_000_000)),
        }
        for part, counted in counts.items()
        for old in [ceilings.get(part, {})]
    }


def main() -> None:
    """Check all parts, or show one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", help="shows what is counted in this part")
    parser.add_argument("--lower", action="store_true", help="lowers the ceilings")
    options = parser.parse_args()
    files = parts()
    if options.part:
        for line in shown(files[options.part]):
            print(line)
        return
    counts = {part: count(paths) for part, paths in files.items()}
    ceilings = json.loads(CEILINGS.read_text()) if CEILINGS.exists() else {}
    if options.lower:
        CEILINGS.write_text(json.dumps(lowered(counts, ceilings), indent=1) + "\n")
    elif messages := exceeded(counts, ceilings):
        sys.exit("\n".join(messages))


def shown(files: list[Path]) -> Iterator[str]:
    """Yield a line for each odd text and each long line of files."""
    for path in files:
        place = path.relative_to(ROOT)
        for text in texts_of(path):
            if (odd := text.odd) is not None:
                content = " ".join(text.content.split())
                yield f"{place}:{text.line}: {odd[0]!r}: {content}"
        if path.suffix == ".md":
            for number in long_lines(path):
                yield f"{place}:{number}: over {WIDTH} characters"


if __name__ == "__main__":
    main()
