"""The tables, in files by subject."""
