import pytest

from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_scheduler.readiness import GateError, Gates, check_gates, evaluate


def executors(ready: int, registered: int) -> list[ExecutorStatus]:
    return [
        ExecutorStatus(ExecutorId(str(n)), "ready" if n < ready else "registered")
        for n in range(registered)
    ]


@pytest.mark.parametrize(
    ("ready", "registered", "gates", "passes"),
    [
        (0, 0, Gates(), True),
        (1, 3, Gates(1), True),
        (1, 3, Gates(2), False),
        (2, 3, Gates(0, 66), True),
        (2, 3, Gates(0, 67), False),
        (0, 0, Gates(0, 1), False),
        (3, 3, Gates(3, 100), True),
        (3, 4, Gates(3, 100), False),
    ],
)
def test_gates_count_ready_executors(
    ready: int, registered: int, gates: Gates, passes: bool
) -> None:
    assert evaluate([], executors(ready, registered), gates).is_ready is passes


def test_waiting_component_is_named() -> None:
    answer = evaluate(["dataset orders (error)"], [], Gates())
    assert not answer.is_ready
    assert answer.lines[0] == "[-] components not ready: dataset orders (error)"
    assert answer.text == "not ready"


def test_each_gate_has_its_line() -> None:
    answer = evaluate([], executors(1, 3), Gates(3, 20))
    assert answer.lines == (
        "[+] components ok",
        "[-] executors: 1/3 ready (33%, registered=3, min=3)",
        "[+] executors percent: 1/3 ready (33%, registered=3, min=20%)",
    )


@pytest.mark.parametrize("gates", [Gates(-1), Gates(0, 101), Gates(0, -1)])
def test_gates_out_of_range_are_refused(gates: Gates) -> None:
    with pytest.raises(GateError):
        check_gates(gates, is_scheduler=True)


def test_gates_need_the_scheduler_role() -> None:
    check_gates(Gates(), is_scheduler=False)
    check_gates(Gates(5, 50), is_scheduler=True)
    with pytest.raises(GateError, match="standalone"):
        check_gates(Gates(1), is_scheduler=False)
