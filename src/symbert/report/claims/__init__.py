"""The claims of the two papers, in the order of their table.

A file for each paper; in it a function for each measure, and above it the claims that are judged by it. A claim is
added there: its row of the table follows.
"""

from symbert.report.claims import shared, symmetric
from symbert.report.claims.claim import Claim, claims_of

CLAIMS: list[Claim] = [*claims_of(symmetric), *claims_of(shared)]
