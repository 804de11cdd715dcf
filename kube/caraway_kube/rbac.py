"""The form of RBAC rules: which verbs a program needs for which resources."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """The allowed verbs for resources of an API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    @property
    def rendered(self) -> dict[str, object]:
        """The rule in the form of a Role."""
        return {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }

    @property
    def rights(self) -> set[tuple[str, str, str]]:
        """The single rights: group, resource, verb."""
        return {(self.group, each, verb) for each in self.resources for verb in self.verbs}


def rendered(rules: Sequence[Rule]) -> list[dict[str, object]]:
    """Return the rules in the form of a Role."""
    return [rule.rendered for rule in rules]
