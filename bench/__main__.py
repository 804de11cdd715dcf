"""`python -m bench [--write] [NAME ...]`: measure, print, and exit 1 where a goal is missed."""

import sys

from bench import encoding, memory, report, startup, throughput, tpch

_SUITES = {
    "startup": startup.measure,
    "encoding": encoding.measure,
    "throughput": throughput.measure,
    "memory": memory.measure,
    "tpch": tpch.measure,
}


def main(arguments: list[str]) -> int:
    """Run the named suites, or all."""
    write = "--write" in arguments
    names = [name for name in arguments if not name.startswith("--")] or list(_SUITES)
    figures: list[report.Figure] = []
    for name in names:
        print(f"{name} ...", flush=True)
        figures += _SUITES[name]()
    print(f"\n{report.machine()}\n\n{report.table(figures)}")
    if write:
        report.write(figures)
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
