"""What the workflow's rules make exhibits of: files by the options of `symbert exhibit`, and what it makes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from symbert.files import sha256_of
from symbert.operators import OPERATORS
from symbert.report.exhibits import EXHIBITS, OF_SUITE, Exhibit, options_to_read
from symbert.settings import hash_of
from symbert.words import Words, option_with, option_with_files

NEUTRAL = {
    "commit",
    "declared",
    "errors",
    "files",
    "project",
    "settings",
    "shapes",
}  # of all stages: edits change no table


@dataclass(frozen=True)
class ReportFiles:
    """The files of a report, and those that its exhibits are made of."""

    folder: str
    inputs: Mapping[str, list[str]]  # files by option; empty where this experiment has none
    of_size: Mapping[str, Mapping[str, list[str]]]  # run files by size
    words: Mapping[str, list[Any]]  # values of options that are no inputs
    of_suite: Mapping[str, Mapping[str, list[str]]]  # by suite beside GLUE: its scores, in the place of GLUE's

    @cached_property
    def every_input(self) -> dict[str, list[str]]:
        """Files by option, those of all sizes together."""
        together: dict[str, list[str]] = {}
        for runs in self.of_size.values():
            for option, files in runs.items():
                together[option] = together.get(option, []) + files
        return {**self.inputs, **together, "suite_scores": self._of_suites("scores")}

    @cached_property
    def exhibits(self) -> list[Exhibit]:
        """Those that this experiment has the inputs for, in the order of the page."""
        own = not self.inputs["origin"]
        return [
            each for each in EXHIBITS.values() if {*each.reads} <= {*self._read(each)} and (own or each.of_imported)
        ]

    def _inputs(self, exhibit: Exhibit) -> dict[str, list[str]]:
        """Files by option, where those of scores are of the suite that an exhibit shows."""
        if exhibit.suite == "glue":
            return self.every_input
        return {**self.every_input, **{option: self._scores(exhibit.suite, option) for option in OF_SUITE}}

    def _scores(self, suite: str, option: str) -> list[str]:
        return self.of_suite.get(suite, {}).get(option, [])

    def _read(self, exhibit: Exhibit) -> list[str]:
        """What an exhibit reads of what this experiment has."""
        existing = {**self._inputs(exhibit), **self.words}
        names = (*exhibit.reads, *exhibit.may_read)
        return [name for name in names if all(existing.get(option) for option in options_to_read(name))]

    def _options(self, exhibit: Exhibit) -> list[str]:
        return list(dict.fromkeys(option for name in self._read(exhibit) for option in options_to_read(name)))

    def made_of(self, exhibit: Exhibit) -> dict[str, Any]:
        """The inputs of an exhibit, by option; functions of the wildcards where it shows one size."""
        options = [option for option in self._options(exhibit) if option not in self.words]
        inputs: dict[str, Any] = {option: self._inputs(exhibit)[option] for option in options}
        if exhibit.per_size:
            for option in {option for runs in self.of_size.values() for option in runs} & inputs.keys():
                inputs[option] = lambda wildcards, option=option: self.of_size[wildcards.size][option]
        return inputs

    def made_before(self, exhibit: Exhibit) -> list[str]:
        """The inputs that an exhibit waits for and does not read: of scores those of all suites."""
        options = [options_to_read(name)[0] for name in exhibit.follows]
        return [file for option in options for file in [*self.every_input.get(option, []), *self._of_suites(option)]]

    @property
    def asked_for(self) -> list[str]:
        """The files of runs and scores, which a report is asked for."""
        names = ("scores", "curve", "robustness", "blimp", "provenance", "origin")
        return [file for name in names for file in [*self.inputs.get(name, []), *self._of_suites(name)]]

    def _of_suites(self, option: str) -> list[str]:
        """Scores on all suites beside GLUE."""
        return [file for suite in self.of_suite for file in self._scores(suite, option)]

    def seeds(self, exhibit: Exhibit) -> list[list[int]]:
        """The seeds of scores that an exhibit shows, for Snakemake to compare."""
        return [self.words[option] for option in self._options(exhibit) if option.endswith("_seeds")]

    def options(self, exhibit: Exhibit) -> Words:
        """The options of an exhibit's command."""

        def words(wildcards: Any, input: Any) -> str:
            texts = [
                option_with(option, self.words[option])
                if option in self.words
                else option_with_files(option, input[option])
                for option in self._options(exhibit)
            ]
            return " ".join([*texts, *([f"--size {wildcards.size}"] if exhibit.per_size else [])])

        return words

    def made(self, exhibits: Iterable[Exhibit], formats: slice = slice(None)) -> list[str]:
        """The files of exhibits, in all formats or some of them."""
        return [
            f"{self.folder}/{stem}.{suffix}"
            for exhibit in exhibits
            for stem in dict.fromkeys(exhibit.stem.format(size=size) for size in self.of_size or [""])
            for suffix in exhibit.formats[formats]
        ]


def report_code(package: Path) -> str:
    """A hash of the report's code and templates, of the modules that it imports from the stages, and of what operators
    say of themselves."""
    own = [file for file in sorted(package.glob("report/**/*")) if file.suffix in (".py", ".html", ".css")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in own if file.suffix == ".py")
    modules = {
        name for name in re.findall(r"^from symbert\.([\w.]+) import", text, re.M) if not name.startswith("report")
    }
    imported = [f"{name.replace('.', '/')}.py" for name in sorted(modules - NEUTRAL)]
    files = [*own, *(package / name for name in imported)]
    described = [[operator.name, operator.formula, vars(operator.description)] for operator in OPERATORS.values()]
    return hash_of([sha256_of(file) for file in files], described)
