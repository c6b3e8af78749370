"""The worker: serves any engine over HTTP, and the reader that asks it."""
