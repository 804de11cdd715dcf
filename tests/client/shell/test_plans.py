from caraway.shell import plans

PLAN = """\
Sort
  Join
    Filter
      Scan a
    Scan b
  Scan c
"""


def test_a_plan_is_drawn_as_a_tree() -> None:
    drawn = plans.draw([{"plan_type": "logical_plan", "plan": PLAN}])

    assert drawn.splitlines() == [
        "logical_plan:",
        "Sort",
        "├─ Join",
        "│  ├─ Filter",
        "│  │  └─ Scan a",
        "│  └─ Scan b",
        "└─ Scan c",
    ]


def test_each_plan_has_its_name() -> None:
    drawn = plans.draw([{"plan_type": "one", "plan": "A"}, {"plan_type": "two", "plan": ""}])

    assert drawn == "one:\nA\n\ntwo:"
