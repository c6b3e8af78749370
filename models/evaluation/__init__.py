"""Metrics of both papers, and what a live system needs beside them."""
