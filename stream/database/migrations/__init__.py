"""Alembic's steps from one form of the database to the next; `stream.database.upgrading` runs them."""
