"""A command that fails leaves no file that only its other files would give a meaning, nor a part of one."""

import shutil
import sys
from pathlib import Path

import pytest

from corpus import test_shards
from corpus.oscar import step_of_parts, write_archive
from corpus.test_texts import TEXT, step_of
from left_overs import assert_nothing_is_left
from model.test_export import write_checkpoint
from symbert.cli import COMMANDS, main
from symbert.configuration import PackSettings
from symbert.corpus.blocklist import BuildBlocklist
from symbert.corpus.shards import Pack
from symbert.corpus.texts import TEXTS
from symbert.digests import digest_of
from symbert.files import write_json
from symbert.sources import DEMO, VOCABULARY
from symbert.steps import File, Step

ELSEWHERE = {"extract": "pretrain/test_extract.py", "export-classifier": "glue/test_export.py"}
ONE_FILE = {  # or none, which is whole or absent
    *("plan", "status", "prune", "bundle", "check-operator", "anatomy", "prepare-task", "measure-speeds"),
    *("measure-anatomy", "choose-rates"),
}
GO_ON = {  # from what an earlier attempt left: bytes, checkpoints, seeds, tables of a page
    *("download", "pretrain", "pretrain-together", "score", "report", "import-scores", "paper", "evaluate"),
}


def pack(folder: Path) -> list[str]:
    parts = test_shards.write_parts(folder, test_shards.DOCUMENTS)
    return [planned(rows_of(folder, parts, 2))]


def rows_of(folder: Path, parts: list[str], held_out: int) -> Pack:
    """The step of rows of parts, which are moved into their step's folder."""
    settings = PackSettings(8, held_out, max_documents=100, sequences_per_shard=9)
    step = Pack(parts=step_of_parts(Path("vocab.txt")), texts=parts, pack=settings)
    Path(step.parts.folder).parent.mkdir(parents=True)
    shutil.move(folder / "parts", step.parts.folder)
    return step


def planned(step: Step, **wildcards: str) -> str:
    """The first file of a step, whose settings.json is written."""
    write_json(Path(step.settings_file), step)
    return next(iter(step.paths(**wildcards).values()))


def write_text(folder: Path) -> list[str]:
    return [planned(step_of("copying", 200))]


def prepare_part(folder: Path) -> list[str]:
    (folder / "own.jsonl").write_text('{"text": "a"}\n')
    step = step_of_parts(DEMO / VOCABULARY.location, rules=[], annotations="computed")
    return ["own.jsonl", planned(step, part="own")]


def build_blocklist(folder: Path) -> list[str]:
    write_archive(folder / "ut1.tar.gz", {"blacklists/adult/domains": "bad.example"})
    (folder / "MD5SUM.LST").write_text(f"{digest_of(folder / 'ut1.tar.gz', 'md5')}  ut1.tar.gz\n")
    return [planned(BuildBlocklist(archive=File("ut1.tar.gz"), checksums=File("MD5SUM.LST")))]


def export(folder: Path) -> list[str]:
    write_checkpoint(folder / "checkpoint")
    return ["--checkpoint", "checkpoint", "--output", "bert"]


INPUTS = {
    function.__name__.replace("_", "-"): function
    for function in (pack, write_text, prepare_part, build_blocklist, export)
}


@pytest.mark.parametrize("command", INPUTS)
def test_a_command_that_fails_leaves_none_of_its_files(command, folder, monkeypatch):
    """`pack` left rows of which no manifest told, and `export` a folder that the same command refused to use."""
    monkeypatch.setitem(TEXTS, "copying", lambda: TEXT)
    monkeypatch.setitem(sys.modules, "tokie", None)  # which is compared with tokenizers first
    assert_nothing_is_left([command, *INPUTS[command](folder)], folder)


def test_of_every_command_it_is_known_what_it_leaves(root):
    assert sorted([*INPUTS, *ELSEWHERE, *ONE_FILE, *GO_ON]) == sorted(COMMANDS)
    for file in ELSEWHERE.values():
        assert "assert_nothing_is_left(" in (root / "tests" / file).read_text()


def test_a_failure_after_the_rows_are_written_leaves_none_of_them(folder, capsys):
    """All held-out rows occur in the training rows, which is known when these are written."""
    parts = test_shards.write_texts(folder, [(9, "menumenumenumenu" * 2), (1, "menumenu")])
    manifest = planned(rows_of(folder, parts, 1))
    assert main(["pack", manifest]) == 65
    assert "held-out rows occur among the training rows" in capsys.readouterr().err
    assert [file.name for file in Path(manifest).parent.iterdir()] == ["settings.json"]
