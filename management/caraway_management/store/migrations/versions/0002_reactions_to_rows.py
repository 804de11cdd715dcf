"""Reactions to rows, revisions of members, and indexes of lists.

Each change is skipped where it is present: a development version had them in its first revision.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from caraway_management.store import types

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# The release before writes rows without these columns while both run.
_COLUMNS: tuple[tuple[str, sa.Column[Any]], ...] = (
    ("members", sa.Column("revision", types.Number, nullable=False, server_default="1")),
    ("reactions", sa.Column("state", sa.String(), nullable=False, server_default="ok")),
    ("reactions", sa.Column("since", types.Moment(), nullable=True)),
    ("reactions", sa.Column("calm_since", types.Moment(), nullable=True)),
    ("reactions", sa.Column("last_resolved_at", types.Moment(), nullable=True)),
    ("reactions", sa.Column("evaluation_unavailable_reason", sa.String(), nullable=True)),
)
_INDEXES = (
    *(
        ("activity", ("org_id", each, "id"))
        for each in ("action", "actor", "project_id", "resource_id")
    ),
    ("metric_samples", ("at",)),
)


def upgrade() -> None:
    present = sa.inspect(op.get_bind())
    columns = {
        table: {each["name"] for each in present.get_columns(table)} for table, _ in _COLUMNS
    }
    for table, column in _COLUMNS:
        if column.name not in columns[table]:
            op.add_column(table, column)
    for table, names in _INDEXES:
        name = f"ix_{table}_{'_'.join(names)}"
        if name not in {each["name"] for each in present.get_indexes(table)}:
            op.create_index(op.f(name), table, list(names), unique=False)
