"""Scores that others measured: a reader for each kind of file, and all of them give the same rows (rows.py)."""
