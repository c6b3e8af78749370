"""When the broker took a message."""

import datetime as dt
from typing import Any

LOG_APPEND_TIME = 1  # Kafka's timestamp type


def appended(message: Any) -> dt.datetime | None:
    """The broker's append time of a message of aiokafka or Faust; None where the sender's clock made it."""
    if message.timestamp_type != LOG_APPEND_TIME:
        return None
    # aiokafka gives milliseconds, Faust seconds.
    seconds = message.timestamp / 1000 if isinstance(message.timestamp, int) else message.timestamp
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
