"""Alerts: rules from a file, and the role that finds what they look for in a run's events."""
