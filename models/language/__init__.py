"""Engines that read a turn in words: rule, generative, and their weights."""
