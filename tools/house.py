"""Counts what the second architecture review counted: `make house`.

The table has the figures of the review (commit f5456c31), the goals of the issue and today's. Only
`now` changes: fix a count here if it does not mean what its row says.
"""

import ast
import re
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache

from tools import graph, prose, small_modules

ROOT = graph.ROOT
_QUESTIONS = frozenset({"write_of", "parameters_of", "sql_of", "searches_of"})
_PARTICIPLES = frozenset({"known", "made", "wanted", "held", "told"})
_LAYERED = ("engine", "scheduler", "operator", "executor", "client", "core")
Row = tuple[str, str, str, str]


def table() -> list[Row]:
    """Return the rows: the point, before, the goal, and now."""
    return [
        ("point", "before", "goal", "now"),
        *_sizes(),
        *_structure(),
        *_composition(),
        *_names(),
        *_prose_rows(),
        *_tests(),
        *_project(),
    ]


def _sizes() -> Iterator[Row]:
    modules = [module for module in graph.modules().values() if module.lines]
    lines = [module.lines for module in modules]
    importers = Counter(name for module in modules for name in module.imports)
    small = {module.name for module in modules if module.lines < small_modules.SMALL}
    single = {module.name for module in modules if importers[module.name] == 1}
    total = sum(lines)
    roots: Counter[str] = Counter()
    for module in modules:
        roots[module.root] += module.lines
    biggest, of_biggest = roots.most_common(1)[0]
    over = sum(1 for each in lines if each > 400)
    yield ("lines of source, modules", "128,950, 1,034", "7,000 fewer by deletions",
           f"{total:,}, {len(modules):,}")  # fmt: skip
    yield ("module: median, longest, over 400", "104, 403, 3", "120 to 180, 400, 0",
           f"{statistics.median(lines):.0f}, {max(lines)}, {over}")  # fmt: skip
    yield ("under 60 lines / one importer / both", "233 / 37 % / 89", "120 / 25 % / 20",
           f"{len(small)} / {len(single) / len(modules):.0%} / {len(small & single)}")  # fmt: skip
    few = small_modules.find(graph.modules(), small_modules.texts())
    yield ("both and not registered; in a short importer of the same root", "not counted", "few",
           f"{len(few.free)}; {len(few.mergeable)}")  # fmt: skip
    yield ("biggest root", "scheduler 28 %", "18 %", f"{biggest} {of_biggest / total:.0%}")


def _structure() -> Iterator[Row]:
    containers = [
        container
        for contract in graph.contracts()
        if contract["type"] == "layers"
        for container in contract.get("containers", [])
    ]
    engine = next(each for each in graph.contracts() if each["name"].endswith("of the engine"))
    floors = graph.layers(engine)
    yield ("packages whose inside is layered by contract", "3", "9",
           ", ".join(each.removeprefix("caraway_") for each in containers))  # fmt: skip
    yield ("layers, packages of the engine", "9, 16", "6, 9",
           f"{len(floors)}, {sum(map(len, floors))}")  # fmt: skip
    names = graph.packages()
    roots = {root: names[root] for root in _LAYERED[2:]} | {
        "dispatch": "caraway_scheduler.dispatch",
        "manifest": "caraway_core.manifest",
    }
    loose = ", ".join(f"{root} {graph.loose(package)}" for root, package in roots.items())
    yield ("loose modules at a root",
           "client 37, executor 35, core 33, operator 27, dispatch 27, manifest 41",
           "at most 8", loose)  # fmt: skip
    yield "circles of modules, TYPE_CHECKING counted", "4", "0", str(len(graph.circles()))


@cache
def _nodes() -> list[ast.AST]:
    """Return all definitions and names of the source."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Name)
    return [
        node
        for module in graph.modules().values()
        for node in ast.walk(ast.parse(module.path.read_text()))
        if isinstance(node, kinds)
    ]


@cache
def _functions() -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in _nodes() if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _composition() -> Iterator[Row]:
    constructors = [node.args for node in _functions() if node.name == "__init__"]
    counts = [len(args.args) + len(args.kwonlyargs) - 1 for args in constructors]
    callables = sum(
        1
        for args in constructors
        for arg in [*args.args, *args.kwonlyargs]
        if arg.annotation is not None and "Callable" in ast.unparse(arg.annotation)
    )
    questions = sum(1 for node in _functions() if node.name in _QUESTIONS)
    yield "functions named as the four questions about a statement", "52", "1", str(questions)
    yield ("constructors: Callable in the annotation of a parameter, most arguments, over 7",
           "146 (with named types), 13, 19", "under 60, 7, 0",
           f"{callables}, {max(counts)}, {sum(1 for each in counts if each > 7)}")  # fmt: skip


def _names() -> Iterator[Row]:
    classes = [node for node in _nodes() if isinstance(node, ast.ClassDef)]
    methods = Counter(
        child.name
        for node in classes
        for child in node.body
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    names = Counter(node.id for node in _nodes() if isinstance(node, ast.Name))
    glossary = (ROOT / "docs/contributors/glossary.md").read_text()
    second = sum(
        1
        for row in re.findall(r"^\| (?!term|---)(.+) \|$", glossary, re.MULTILINE)
        if len(cells := row.split(" | ")) > 2 and cells[2].strip()
    )
    public = [node.name for node in classes if not node.name.startswith("_")]
    words = sum(1 for name in public if re.fullmatch(r"[A-Z][a-z]+", name))
    others = sum(names[each] for each in _PARTICIPLES)
    yield ("methods `take`, `of`, `run`, `begin`", "50, 50, 46, 41", "say their object",
           ", ".join(str(methods[name]) for name in ("take", "of", "run", "begin")))  # fmt: skip
    yield ("uses of `found`, and of five more participles", "2,303, about 2,400", "few",
           f"{names['found']:,}, {others:,}")  # fmt: skip
    yield ("public classes of one word", "366 of 1,481", "reviewed",
           f"{words} of {len(public):,}")  # fmt: skip
    yield "terms of the glossary with a second name", "21", "0", str(second)


def _prose_rows() -> Iterator[Row]:
    counts = {part: prose.count(files) for part, files in prose.parts().items()}
    worst = sorted(counts.items(), key=lambda each: -each[1].odd_of_1000)
    over = [f"{part} {each.odd_of_1000}" for part, each in worst if each.odd_of_1000 >= 40]
    yield ("odd texts of 1,000 (`tools.prose`)", "search 203, ai 139, indexes 197, decisions 212",
           "under 40 everywhere", ", ".join(over))  # fmt: skip
    yield ("lines of prose over 100 characters in docs", "2,033", "0",
           f"{sum(each.long for each in counts.values()):,}")  # fmt: skip
    modules = graph.modules().values()
    comments = sum(
        1
        for module in modules
        for line in module.path.read_text().splitlines()
        if line.lstrip().startswith("#")
    )
    yield ("comments, of the lines of source", "1.2 %", "3 %",
           f"{comments / sum(module.lines for module in modules):.1%}")  # fmt: skip


def _tests() -> Iterator[Row]:
    tests = list((ROOT / "tests").rglob("*.py"))
    total = sum(path.read_text().count("\n") for path in tests)
    source = sum(module.lines for module in graph.modules().values())
    mirrored: Counter[str] = Counter()
    of_root: Counter[str] = Counter()
    for module in graph.modules().values():
        if module.path.name == "__init__.py":
            continue
        of_root[module.root] += 1
        parts = module.path.relative_to(ROOT).parts[2:]
        test = ROOT.joinpath("tests", module.root, *parts[:-1], f"test_{parts[-1]}")
        mirrored[module.root] += test.exists()
    share = mirrored.total() / of_root.total()
    of_core = mirrored["core"] / of_root["core"]
    others = re.compile(r"^(?:from|import) tests\.(?!kit)[\w.]*\btest_\w+", re.MULTILINE)
    imports = sum(len(others.findall(path.read_text())) for path in tests)
    yield ("tests / source; modules with a test module of their own; core",
           "1.01; 64 %; 50 %", "1.0; 75 %; 75 %",
           f"{total / source:.2f}; {share:.0%}; {of_core:.0%}")  # fmt: skip
    yield "test modules imported by another", "62", "0", str(imports)


def _project() -> Iterator[Row]:
    text = "\n".join(module.path.read_text() for module in graph.modules().values())
    lines = text.count("\n") / 1000
    broad = len(re.findall(r"except (?:Base)?Exception\b", text))
    untyped = [
        name
        for override in graph.project()["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "skip"
        for name in override["module"]
    ]
    typed = ", ".join(
        each for each in ("pyarrow", "boto3", "psycopg2", "pandas") if f"{each}.*" not in untyped
    )
    folder = ROOT / "engine/caraway_engine/known_faults"
    catalogue = "".join(path.read_text() for path in sorted(folder.glob("faults_of_*.py")))
    faults = catalogue.count("    KnownFault(\n")
    cited = sum("#" in part for part in catalogue.split("    KnownFault(\n")[1:])
    decisions = sorted((ROOT / "docs/decisions").glob("0*.md"))
    stated = sum("Status: " in path.read_text()[:400] for path in decisions)
    written = sum(
        len(re.findall(r"<!-- begin [\w-]+ -->", path.read_text()))
        for path in (ROOT / "docs").rglob("*.md")
    )
    untyped_names = len(re.findall(r"\bAny\b", text))
    yield "`Any` in 1,000 lines", "12", "5", f"{untyped_names / lines:.0f}"
    yield ("`type: ignore`, broad `except`", "69, 185", "few, each with a reason",
           f"{text.count('# type: ignore')}, {broad}")  # fmt: skip
    yield "stubs for pyarrow, boto3, psycopg2, pandas", "none", "all", typed or "none"
    yield "faults of the engine with an issue upstream", "1 of 25", "all", f"{cited} of {faults}"
    yield "decisions with a status", "0", "all", f"{stated} of {len(decisions)}"
    yield "parts of documents that tests write from code", "2", "all tables", str(written)
    yield "rules of ruff", "11", "with ASYNC, BLE, D, PLR0913, PT, S301, T20", _rules()
    tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=False)
    yield (
        "release",
        "0 tags, version in 7 files",
        "0.1.0 tagged",
        (f"{len(tags.stdout.split())} tags, version in one file, `make dist`"),
    )


def _rules() -> str:
    lint = graph.project()["tool"]["ruff"]["lint"]
    return f"{len(lint['select'])}, {len(lint['per-file-ignores'])} exceptions by file"


def main() -> None:
    """Print the table."""
    rows = table()
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        print(f"| {' | '.join(cells)} |")
        if not number:
            print(f"|{'|'.join('-' * (width + 2) for width in widths)}|---|")


if __name__ == "__main__":
    main()
