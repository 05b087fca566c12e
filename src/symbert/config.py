"""Moved to symbert.configuration; this file goes in an hour."""

from symbert.configuration import *  # noqa: F403
