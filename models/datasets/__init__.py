"""Labelled dialogues: one loader a source, all yielding the same form, read from a path the user gives."""
