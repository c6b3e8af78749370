"""Column types that both databases keep alike."""

from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.dialects.postgresql import TEXT
from sqlalchemy.types import TypeDecorator, TypeEngine


class Name(TypeDecorator[str]):
    """A text in code point order, whatever characters it has: PostgreSQL's own texts have no U+0000.

    That one is kept as U+0001 U+0001, and U+0001 as U+0001 U+0002: no two texts become one, and their order
    stays.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """On PostgreSQL without the order of a language, which two servers may see differently."""
        kind = TEXT(collation="C") if dialect.name == "postgresql" else Text()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is kept."""
        return value and value.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """As it was."""
        return value and value.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
