"""The module that Alembic runs; the connection is that of `upgrade`."""

from alembic import context

from caraway_management.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
