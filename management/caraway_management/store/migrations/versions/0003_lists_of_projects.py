"""An index of lists of projects."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLE = "projects"


def upgrade() -> None:
    columns = ["org_id", "deleted_at", "id"]
    op.create_index(op.f("ix_projects_org_id_deleted_at_id"), _TABLE, columns, unique=False)
    op.drop_index(op.f("ix_projects_org_id_id"), _TABLE)
