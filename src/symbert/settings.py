"""Moved to symbert.configuration; this file goes in an hour."""

from symbert.configuration import *  # noqa: F403
from symbert.shapes import hash_of  # noqa: F401
from symbert.syntax import code_of  # noqa: F401
