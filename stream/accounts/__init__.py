"""Accounts: the principals of each tenant, and the keys by which they come."""
