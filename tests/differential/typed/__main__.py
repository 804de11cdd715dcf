"""`python -m tests.differential.typed FIRST COUNT [RUNNER]`: print statements that differ."""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.differential import asking, judging, runners
from tests.differential.conftest import RUNNERS
from tests.differential.typed import tables
from tests.differential.typed.statements import statement
from tests.differential.typed.verdicts import REFUSED_BY_DUCKDB, SAME, verdict


def _opening(name: str) -> runners.Opening:
    return runners.single_node if name == "plain" else RUNNERS[name]


def main(first: int, count: int, runner: str) -> None:
    with TemporaryDirectory() as folder:
        dataset = tables.build(Path(folder) / "typed")
        tally: Counter[str] = Counter()
        with judging.judge(dataset) as judge, asking.opened(_opening(runner), dataset) as opened:
            for seed in range(first, first + count):
                found = statement(seed)
                said = verdict(found, opened.outcome(found.sql), judge)
                tally[said.word] += 1
                if said.word not in (SAME, REFUSED_BY_DUCKDB):
                    print(f"-- {seed} {said.word}: {said.text}\n{found.sql};;\n", flush=True)
        print(dict(tally))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "plain")
