"""The values of the section `workers`."""

from dataclasses import dataclass
from typing import Literal

WorkerType = Literal["load_balance", "sql"]
Routing = Literal["round_robin", "weighted", "fallback"]
DEFAULT_COOLDOWN_S = 30.0


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """A model that a worker may choose."""

    name: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DeclaredWorker:
    """One worker: a choice between models, a prompt for them on a cron, or SQL on a cron.

    `models` are in the order of the fallback, where that is the routing. `cron` has five fields, in
    UTC. A model that failed is passed over for `cooldown_s`.
    """

    name: str
    type: WorkerType
    description: str | None = None
    routing: Routing = "round_robin"
    models: tuple[RoutedModel, ...] = ()
    sql: str | None = None
    prompt: str | None = None
    cron: str | None = None
    cooldown_s: float = DEFAULT_COOLDOWN_S

    @property
    def is_llm(self) -> bool:
        """True if requests can name it as a model."""
        return bool(self.models)
