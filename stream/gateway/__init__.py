"""The gateway: Volteface over HTTP, for platforms and people who speak no Kafka."""
