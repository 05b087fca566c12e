"""What seeds can show: the least difference that a test finds in four of five repetitions.

After the runs, the report computes it from the spread of their seeds; before them, `symbert plan` from a spread that
others published. Imports no torch.
"""

LEVEL = 0.05  # at or below which a p value, corrected where there are several, is called significant
POWER = 0.8  # chance of finding a difference of the size that is named
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
ARRANGEMENTS = 2**14  # of units or signs: with as many or fewer all are counted, of more so many are drawn


def detectable_effect(error: float, freedom: float, level: float) -> float:
    """The difference of two means that a two-sided t test at `level` finds with 80 % power, either way.

    `error` is the standard error of the difference, with `freedom` degrees of freedom, as its interval has them: of
    paired differences Student's, of two groups Welch's. It is the shift of the noncentral t distribution of which a
    fifth lies below the bound of the test (Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988).
    """
    from scipy.special import nctdtrinc, stdtrit  # type: ignore[import-untyped]  # slow to load, and most commands need no test

    return error * float(nctdtrinc(freedom, 1 - POWER, stdtrit(freedom, 1 - level / 2)))


def smallest_sign_flip_p(count: int) -> float:
    """The least p that the sign-flip test of so many differences can give."""
    return 2 / 2**count if 2**count <= ARRANGEMENTS else 1 / (1 + ARRANGEMENTS)
