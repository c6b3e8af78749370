"""The GPU worker: the reader behind HTTP, and its client."""
