"""The texts and bodies of notices."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

_WORDS: Mapping[str, str] = {
    "monitor.fired": "Alert",
    "monitor.resolved": "Resolved",
    "reaction.resolved": "Resolved",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """An event of a project or of a cluster."""

    id: str
    """The same for all targets and repetitions."""
    type: str
    """`monitor.fired`, `monitor.resolved`, `reaction.matched` or `reaction.resolved`."""
    at: datetime
    name: str
    """The name of the monitor or reaction."""
    subject: str
    """The subject, such as `project 'sales'`."""
    summary: str
    """The event, in a sentence."""
    data: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the body of webhooks, which is also how the outbox keeps it."""
        return {
            "id": self.id,
            "type": self.type,
            "timestamp": self.at.isoformat(),
            "data": {
                "name": self.name,
                "subject": self.subject,
                "summary": self.summary,
                **self.data,
            },
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the notice of a body."""
        data = dict(values["data"])
        return cls(
            values["id"], values["type"], datetime.fromisoformat(values["timestamp"]),
            data.pop("name"), data.pop("subject"), data.pop("summary"), data,
        )  # fmt: skip

    @property
    def title(self) -> str:
        """The subject line, with nothing that could begin another header."""
        word = _WORDS.get(self.type, "Event")
        severity = f" ({self.data['severity']})" if word == "Alert" else ""
        return " ".join(f"{word}{severity}: {self.name} on {self.subject}".split())

    @property
    def text(self) -> str:
        """The text for people."""
        lines = [self.summary, "", f"Time: {self.at:%Y-%m-%d %H:%M:%S} UTC", f"Id: {self.id}"]
        if details := self.data.get("details"):
            lines += ["", json.dumps(details, indent=2, ensure_ascii=False)]
        return "\n".join(lines)
