"""The sections of workers."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from caraway_core.manifest.sections import (
    After,
    Items,
    Limits,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    Written,
    key,
)
from caraway_core.manifest.shape.acceleration import check_cron
from caraway_core.manifest.texts import names


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerModelSection(Section):
    from_: Annotated[Written, Limits(min_length=1)] = key("from")
    weight: Annotated[float, Limits(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    order: Annotated[int, Limits(ge=0, le=1_000_000)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalanceSection(Section):
    routing: Items[WorkerModelSection] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSection(Section):
    name: Annotated[Written, After(names.component)]
    type: Literal["load_balance", "sql"] | None = None
    description: str | None = None
    models: Items[WorkerModelSection] = ()
    load_balance: LoadBalanceSection | None = None
    sql: Text | None = None
    cron: Annotated[Text, After(check_cron)] | None = None
    params: Texts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    depends_on: TextList = key("dependsOn", default=())
