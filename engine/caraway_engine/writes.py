"""Plans of statements that write, made to write elsewhere than they say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datafusion import SessionContext
from datafusion.catalog import Table
from datafusion.plan import LogicalPlan

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_engine import contexts, plan_facts, plan_nodes
from caraway_engine.stages.inputs import INPUT_SCHEMA


@dataclass(frozen=True, slots=True)
class Insertion:
    """An INSERT into another table than the statement's: its rows, in their columns."""

    target: TableName
    plan: Any

    def rows(self, context: SessionContext) -> Table:
        """Make a view of the rows to insert."""
        return context.create_dataframe_from_logical_plan(LogicalPlan(self.plan)).into_view()

    def sql(self, name: str) -> str:
        """Word the INSERT of the rows, which are to be found under a name among the inputs."""
        schema = plan_nodes.schema(self.plan)
        columns = ", ".join(_quoted(each) for each in schema.names)
        target = contexts.quoted(self.target)
        return f"INSERT INTO {target} ({columns}) SELECT * FROM {INPUT_SCHEMA}.{_quoted(name)}"


def insertion(plan: Any, targets: Mapping[TableName, TableName]) -> Insertion | None:
    """Return the INSERT that stands for a plan, if its target has another table.

    Raises:
        InvalidQueryError: it is another write.
    """
    facts = plan_facts.of(plan)
    if facts.write is None or facts.write.table not in targets:
        return None
    table, name = facts.write.table, facts.write.name
    if name != plan_facts.INSERT:
        raise InvalidQueryError(
            f"{name} of dataset '{table}' is not supported: only INSERT goes through an "
            "accelerated dataset to its source"
        )
    (rows,) = plan._raw_plan.inputs()
    return Insertion(targets[table], rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
