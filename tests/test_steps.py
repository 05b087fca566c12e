"""Steps: the key follows from every field and from nothing else, and settings.json gives the same step."""

import importlib
import re
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from symbert.errors import ConfigError
from symbert.files import write_json
from symbert.operators import OPERATORS
from symbert.steps import File, Step, fields_of, raised, read_step, version_of


class Grind(Step):
    place: ClassVar[str] = "coffee/ground"
    files: ClassVar[dict[str, str]] = {"ground": "{grinder}.bag", "record": "{grinder}.json"}

    beans: File
    size: int
    sieved: bool = False


class Brew(Step):
    place: ClassVar[str] = "coffee/brewed"

    ground: Grind
    degrees: float


GROUND = Grind(beans=File("shop/beans", "ab" * 32), size=3)
BREW = Brew(ground=GROUND, degrees=92.5)


def written(step: Step, below: Path) -> Path:
    folder = below / Path(step.folder).name
    write_json(folder / "settings.json", msgspec.to_builtins(step))
    return folder


def test_a_step_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_step(written(BREW, tmp_path), Brew) == BREW
    assert read_step(written(GROUND, tmp_path), Brew | Grind) == GROUND


def test_every_field_changes_the_key_also_that_of_steps_which_read_the_files() -> None:
    coarse = msgspec.structs.replace(GROUND, size=4)
    assert coarse.key != GROUND.key
    assert msgspec.structs.replace(BREW, ground=coarse).key != BREW.key
    assert msgspec.structs.replace(GROUND, sieved=True).key != GROUND.key


def test_a_file_with_a_digest_may_be_moved_and_one_without_may_not() -> None:
    moved = msgspec.structs.replace(GROUND, beans=File("cellar/beans", "ab" * 32))
    assert moved.key == GROUND.key
    named, other = (msgspec.structs.replace(GROUND, beans=File(path)) for path in ("a", "b"))
    assert named.key != other.key


def test_a_new_field_with_its_default_changes_no_key() -> None:
    class Older(Step, tag="Grind"):
        place: ClassVar[str] = "coffee/ground"
        beans: File
        size: int

    assert Older(beans=GROUND.beans, size=3).key == GROUND.key


def test_a_raised_version_is_another_folder_and_settings_of_the_version_before_are_refused(tmp_path: Path) -> None:
    class Newer(Step, tag="Grind", kw_only=True):
        place: ClassVar[str] = "coffee/ground"
        beans: File
        size: int
        sieved: bool = False
        version: int = raised(2)

    newer = Newer(beans=GROUND.beans, size=3)
    assert newer.key != GROUND.key
    assert read_step(written(newer, tmp_path), Newer) == newer
    with pytest.raises(ConfigError, match="another version"):
        read_step(written(GROUND, tmp_path), Newer)
    with pytest.raises(ConfigError, match="version 2"):
        read_step(written(newer, tmp_path), Grind)


def test_a_key_that_only_another_version_knows_is_no_key_to_remove_by_hand(tmp_path: Path) -> None:
    folder = written(GROUND, tmp_path)
    write_json(folder / "settings.json", {**msgspec.to_builtins(GROUND), "recipe": "fast"})
    with pytest.raises(ConfigError, match="unknown key 'recipe'; run snakemake again"):
        read_step(folder, Grind)


def test_settings_that_were_edited_are_refused(tmp_path: Path) -> None:
    folder = written(GROUND, tmp_path)
    write_json(folder / "settings.json", msgspec.to_builtins(msgspec.structs.replace(GROUND, size=5)))
    with pytest.raises(ConfigError, match="key"):
        read_step(folder, Grind)


def test_all_fields_have_names_also_those_with_their_default() -> None:
    fields = fields_of(BREW)
    assert fields["degrees"] == 92.5
    assert fields["ground.step"] == "Grind"
    assert (fields["ground.size"], fields["ground.sieved"]) == (3, False)
    assert fields["ground.beans.path"] == "shop/beans"


def test_the_files_of_a_job_are_those_that_its_rule_makes_of_any_key() -> None:
    of_rule = {name: file.format(key=GROUND.key, grinder="left") for name, file in Grind.outputs().items()}
    assert GROUND.paths(grinder="left") == of_rule
    assert all(Path(path).parent == Path(GROUND.folder) for path in of_rule.values())


def lacking(changelog: str, versions: dict[str, int]) -> list[str]:
    """The classes whose version above 1 has no line under "Breaks results"."""
    section = changelog.partition("### Breaks results\n")[2].partition("\n### ")[0]
    raised = {name: version for name, version in versions.items() if version > 1}
    return [name for name, version in raised.items() if f"`{name}` version {version}" not in section]


def test_every_raised_version_is_said_in_the_changelog(root: Path) -> None:
    """Of steps, and of operators' classes."""
    source = root / "src"
    for file in (source / "symbert").rglob("*.py"):
        if re.search(r"^class \w+\(Step\b", file.read_text(), re.MULTILINE):
            importlib.import_module(".".join(file.relative_to(source).with_suffix("").parts))
    versions = {step.__name__: version_of(step) for step in Step.__subclasses__() if step.__module__ != __name__}
    for operator in OPERATORS.values():
        versions |= {operator.path.partition(":")[2]: 1, **operator.versions}
    changelog = (root / "CHANGELOG.md").read_text()
    assert {"Pretraining", "SharedAttention"} <= versions.keys() and not lacking(changelog, versions)
    assert lacking(changelog, dict.fromkeys(versions, 99)) == [*versions]
    assert not lacking("### Breaks results\n\n* `Brew` version 2: stirred.\n", {"Brew": 2, "Grind": 1})
