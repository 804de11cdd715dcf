"""The sections of workers."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.shape.acceleration import check_cron
from caraway_core.manifest.shape.base import Anything, Section, Text, TextList, Texts, Written
from caraway_core.manifest.texts import names


class WorkerModelSection(Section):
    from_: Annotated[Written, Field(min_length=1)] = Field(alias="from")
    weight: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    order: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class LoadBalanceSection(Section):
    routing: list[WorkerModelSection] = Field(default_factory=list)


class WorkerSection(Section):
    name: Annotated[Written, AfterValidator(names.component)]
    type: Literal["load_balance", "sql"] | None = None
    description: str | None = None
    models: list[WorkerModelSection] = Field(default_factory=list)
    load_balance: LoadBalanceSection | None = None
    sql: Text | None = None
    cron: Annotated[Text, AfterValidator(check_cron)] | None = None
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    depends_on: TextList = Field([], alias="dependsOn")
