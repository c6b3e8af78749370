"""Thought-of-Stance: four roles and a critic that reason about a turn, over a window or a whole dialogue."""
