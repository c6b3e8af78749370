"""Alembic's entry: runs the steps on the connection that `stream.database.upgrading` hands over.

The version stands in `accounts`, which is backed up, and so comes back with a backup.
"""

from alembic import context

from stream.database.schema import ACCOUNTS, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=ACCOUNTS,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()
