"""README.md and docs/: where their links lead, and whether the commands that they name exist and are accepted."""

import inspect
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from snakemake.cli import get_argument_parser

from documented import blocks_of, custom_files
from symbert import cli
from symbert.errors import SymbertError
from symbert.experiment.project import read_chosen

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "config/README.md", ROOT / "findings/README.md", *(ROOT / "docs").rglob("*.md")]
)
OPERATOR = "from symbert.model.attention import SymmetricAttention\nclass Gated(SymmetricAttention):\n    pass\n"


class Command(NamedTuple):
    """A command line of symbert, snakemake or make as a page names it."""

    page: Path
    words: list[str]
    complete: bool  # in a block, to be typed as it is; else in a sentence, which may name its beginning alone


def commands_of(page: Path) -> list[Command]:
    text, lines = page.read_text(encoding="utf-8"), []
    for kind, block in blocks_of(text):
        if kind in ("", "bash", "console", "sh"):
            lines += [(line, True) for line in block.replace("\\\n", " ").splitlines()]
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    lines += [(" ".join(span.split()), False) for span in re.findall(r"`([^`]+)`", prose)]
    commands = []
    for line, complete in lines:
        if re.match(r" *(symbert|snakemake|make) ", line):
            words = [word for word in shlex.split(line, comments=True) if word != "…"]
            commands.append(Command(page, words, complete and "…" not in line))
    return commands


# Findings and measurements name the commands of the commit that made them.
MADE_BEFORE = {"findings", "measurements"}
COMMANDS = [
    command for page in PAGES if not MADE_BEFORE & {*page.relative_to(ROOT).parts} for command in commands_of(page)
]


def of(program: str) -> list[Command]:
    """The command lines of a program."""
    return [command for command in COMMANDS if command.words[0] == program]


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower())
    return kept.strip().replace(" ", "-")


def test_every_link_leads_to_a_file_and_a_heading():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
        for link in links:
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page}: {link}: there is no such file"
            if anchor and target.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
                assert anchor in map(slug, headings), f"{page}: {link}: no such heading"


def test_every_documented_command_of_symbert_exists_with_its_options():
    checked = 0
    for command in of("symbert"):
        words = command.words[1:]
        if words[:1] in ([], ["--help"], ["--version"]) or words[0].startswith("<"):
            continue  # of commands in general
        assert words[0] in cli.COMMANDS, command
        parameters = inspect.signature(cli.load(words[0])).parameters.values()
        options = {f"--{parameter.name.replace('_', '-')}": parameter for parameter in parameters}
        named = {word for word in words[1:] if word.startswith("--")} - {"--help"}
        needed = {
            name
            for name, option in options.items()
            if option.default is option.empty and option.kind is not option.POSITIONAL_ONLY
        }
        assert named <= options.keys() and (not command.complete or needed <= named), command
        checked += 1
    assert checked > 20


@pytest.fixture(scope="module")
def users_folder(tmp_path_factory) -> Path:
    """A folder with all that documented commands name as the user's."""
    folder = tmp_path_factory.mktemp("documented")
    for name in ("DIR", "mirror", "data", "crawl/2023"):
        (folder / name).mkdir(parents=True)
    for name in ("crawl/2023/a.jsonl.zst", "crawl/2023/b.parquet", "crawl/c.jsonl"):
        (folder / name).touch()
    for number, name in enumerate(("train.csv", "dev.csv", "data/train.csv", "data/dev.csv")):
        (folder / name).write_text(f"text,label\n{number},no\n{number + 4},yes\n")
    (folder / "my_module.py").write_text(OPERATOR)
    (folder / "mine.yaml").write_text("{}")
    (folder / "src").symlink_to(ROOT / "src")
    for name in ("train.de", "train.en", "dev.de", "dev.en"):
        (folder / name).touch()
    pages = ("README.md", "docs/getting-started.md", "docs/pretraining.md", "docs/encoders.md")
    for name, text in (item for page in pages for item in custom_files(ROOT, page).items()):
        (folder / name).write_text(text)
    (folder / "studies").symlink_to(ROOT / "studies")
    return folder


def test_every_documented_run_of_snakemake_has_options_targets_and_a_configuration(users_folder, monkeypatch):
    monkeypatch.chdir(users_folder)
    monkeypatch.syspath_prepend(users_folder)
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow").rglob("*.smk"))
    rules = set(re.findall(r"^ *rule (\w+):", text + (ROOT / "Snakefile").read_text(), re.M))
    for command in of("snakemake"):
        options = get_argument_parser().parse_args(list(command.words[1:]))
        for target in options.targets:
            assert target in rules or target.startswith(("results/", "$")), command
        values = [re.sub("/scratch/|/data/glue_", "", value) for value in options.config or ()]
        try:
            read_chosen(ROOT, None, options.configfile, values)
        except SymbertError as error:
            raise AssertionError(str(command)) from error


def test_every_documented_test_exists():
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    named = {(page.name, name) for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}
    assert len(named) > 10 and {(page, name) for page, name in named if name not in defined} == set()


def test_every_documented_target_of_make_exists_with_its_variables():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in of("make"):
        for name, assigned, _ in (word.partition("=") for word in command.words[1:]):
            assert f"$({name})" in makefile if assigned else re.search(rf"^{name}:", makefile, re.M), command


def test_every_rule_says_in_a_line_what_it_does():
    """`snakemake --list-rules` shows these lines; a rule by `use rule` has none of its own in Snakemake 9.0."""
    files = [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.smk")]
    heads = [found for path in files for found in re.findall(r"^rule (\w+):\n(.*)$", path.read_text(), re.M)]
    assert len(heads) >= 16
    assert {name for name, line in heads if not re.fullmatch(r'    """[A-Z].{10,}\."""', line)} == set()


def test_the_site_has_every_page():
    """`make docs` ends with an error where a page is missing; the tests need no site to say so."""
    _, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    site = set(re.findall(r"(?:- |: )(\S+\.md)$", navigation, re.M))
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents}
    assert site == pages | {"first-hour.md"}, "docs/links.py makes that page from README.md"
