"""The state store: a port, Redis behind it, and an in-memory twin."""
