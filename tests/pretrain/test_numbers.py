"""The stand-in for parallel text: what its lines are, and that no pair is on both sides of the split."""

import gzip

from symbert.keys import NUMBERS, NUMBERS_TEXT, PARALLEL_FILES

WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn
ten twenty thirty forty fifty sixty seventy eighty ninety
zehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig
"""  # noqa: E501
ENGLISH, GERMAN, TENS, ZEHNER = (line.split() for line in WORDS.strip().splitlines())


def in_english(number: int) -> str:
    """The words of a number below a million, without hyphens."""
    for unit, name in ((1000, "thousand"), (100, "hundred")):
        if number >= unit:
            rest = f" {in_english(number % unit)}" if number % unit else ""
            return f"{in_english(number // unit)} {name}{rest}"
    if number < 20:
        return ENGLISH[number]
    return TENS[number // 10 - 1] + (f" {ENGLISH[number % 10]}" if number % 10 else "")


def in_german(number: int, is_last: bool = True) -> str:
    """The words of a number below a million, with spaces between them: the ones stand before the tens."""
    for unit, name in ((1000, "tausend"), (100, "hundert")):
        if number >= unit:
            rest = f" {in_german(number % unit)}" if number % unit else ""
            return f"{in_german(number // unit, False)} {name}{rest}"
    if number < 20:
        return GERMAN[number] if is_last or number != 1 else "ein"
    ones = f"{in_german(number % 10, False)} und " if number % 10 else ""
    return ones + ZEHNER[number // 10 - 1]


def test_each_line_has_the_words_of_one_number_in_both_languages():
    numbers = {f"{in_english(number).capitalize()}.": number for number in range(1_000_000)}
    sides = {key: gzip.decompress((NUMBERS / NUMBERS_TEXT[key]).read_bytes()).decode() for key in PARALLEL_FILES}
    pairs = []
    for split in ("", "validation_"):
        sources, targets = (sides[f"{split}{side}"].splitlines() for side in ("source", "target"))
        for source, target in zip(sources, targets, strict=True):
            assert target == f"{in_german(numbers[source]).capitalize()}."
            pairs.append(numbers[source])
    assert len(pairs) == len(set(pairs)) == 4200
