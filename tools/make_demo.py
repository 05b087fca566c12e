"""Write the demo, which src/symbert/demo holds: python tools/make_demo.py FOLDER [--packages DIR]

DIR is where the packages whose documentation is the text are installed, at the versions of demo_documentation.py; by
default those of this environment. The same versions of them and of our dependencies (envs/constraints.txt) give the
same bytes. LICENSES.txt, beside them, has the licences of those packages; it is no output.
"""

import argparse
import sysconfig
import zlib
from pathlib import Path
from random import Random

from demo_corpus import write_corpus
from demo_documentation import passages
from demo_suites import write_blimp, write_squad2, write_superglue
from demo_tasks import sentences_in, write_glue

from symbert.files import sha256_of, write_text

WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn
ten twenty thirty forty fifty sixty seventy eighty ninety
zehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig
"""  # noqa: E501
ENGLISH, GERMAN, TENS, ZEHNER = (line.split() for line in WORDS.strip().splitlines())
PAIRS = {"train": 4_000, "validation": 200}  # of parallel text


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


def write_parallel_text(root: Path) -> None:
    """Write numbers in English and German words below `root`, line beside line."""
    numbers = iter(Random(0).sample(range(1_000_000), sum(PAIRS.values())))
    for split, count in PAIRS.items():
        drawn = [next(numbers) for _ in range(count)]
        for language, in_words in (("en", in_english), ("de", in_german)):
            text = "".join(f"{in_words(number).capitalize()}.\n" for number in drawn)
            path = root / f"parallel/{split}.{language}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(text.encode(), 9, wbits=31))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the demo is written")
    parser.add_argument("--packages", type=Path, default=Path(sysconfig.get_path("purelib")), metavar="DIR")
    arguments = parser.parse_args()
    root, documentation = arguments.folder, passages(arguments.packages)
    write_corpus(documentation, root)
    sentences = sentences_in(documentation)
    for write in (write_glue, write_superglue, write_squad2, write_blimp):
        write(sentences, root)
    write_parallel_text(root)
    files = sorted(path for path in root.glob("*/**/*") if path.is_file())
    write_text(root / "SHA256SUMS", "".join(f"{sha256_of(path)}  {path.relative_to(root)}\n" for path in files))


if __name__ == "__main__":
    main()
