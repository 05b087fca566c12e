"""The claims of the two papers, in the order of their table; a file for each paper, a function for each measure."""

from symbert.report.claims import shared, symmetric
from symbert.report.claims.claim import Claim, claims_of

CLAIMS: list[Claim] = [*claims_of(symmetric), *claims_of(shared)]
