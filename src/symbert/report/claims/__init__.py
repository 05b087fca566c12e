"""The claims of the two papers: a file for each paper, in it a function for each measure, and above it its claims.

A claim is added there: its row of the table follows.
"""

from symbert.report.claims import evidence, shared, symmetric
from symbert.report.published import SHARED_PAPER

__all__ = ["CLAIMS", "shared", "symmetric"]
CLAIMS = sorted(evidence.CLAIMS, key=lambda claim: claim.source == SHARED_PAPER)  # those about shared come last
