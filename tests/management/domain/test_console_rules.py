"""The rules that the console has of the domain: roles, monitors and reactions."""

import json
import os
from pathlib import Path
from typing import get_args

from caraway_management.domain import monitors, reactions, scopes
from caraway_management.domain.monitors import Of
from caraway_management.domain.scopes import Role

STORED = Path(__file__).parents[3] / "console" / "src" / "management" / "rules.json"


def test_the_rules_of_the_console_are_those_of_the_service() -> None:
    """`CARAWAY_WRITE_DOCS=1` writes them."""
    found = {
        "roles": {role: sorted(scopes.allowed(role)) for role in Role},
        "templates": {
            name: {
                "title": each.title,
                "unit": each.unit,
                "op": each.op,
                "sustainSecs": each.sustain_s,
                "hasDatasets": each.has_datasets,
            }
            for name, each in monitors.TEMPLATES.items()
            if each.of is Of.PROJECT
        },
        "reactions": [
            {"kind": kind, "fields": sorted(reactions.FIELDS[kind])} for kind in reactions.ALL_KINDS
        ],
        "ops": get_args(monitors.Op),
        "windows": get_args(monitors.Window),
        "severities": get_args(monitors.Severity),
    }
    text = json.dumps(found, indent=1) + "\n"
    if os.environ.get("CARAWAY_WRITE_DOCS"):
        STORED.write_text(text)
    assert STORED.read_text() == text, "run this test with CARAWAY_WRITE_DOCS=1"
