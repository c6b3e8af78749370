"""One module a step: `revision`, `down_revision`, `upgrade()` and `downgrade()`."""
