"""A laboratory for attention operators: from web text to the tables and figures of arXiv 2406.06366."""

__version__ = "0.1.0"
