"""Starts the broker and the Redis that a single machine needs, and always stops them again."""

from stream.embedded.broker import EmbeddedBroker
from stream.embedded.process import ServiceUnavailable
from stream.embedded.redis import EmbeddedRedis, find_redis_servers

__all__ = ["EmbeddedBroker", "EmbeddedRedis", "ServiceUnavailable", "find_redis_servers"]
