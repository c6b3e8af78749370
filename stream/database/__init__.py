"""The database: `accounts`, backed up and never rebuilt, and `views`, fed from the topics and rebuilt."""

from stream.database.engine import Database, DatabaseUnavailable, open_database

__all__ = ["Database", "DatabaseUnavailable", "open_database"]
