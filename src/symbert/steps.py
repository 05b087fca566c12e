"""A job as a value: all that determines the files of a folder below results/, declared beside the function that makes
them.

Encoded, a step is the folder's settings.json; its hash is the key that ends the folder's name; decoded, it is what the
command and the report read. Imports no torch.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from symbert.declared import mistake_in
from symbert.errors import ConfigError
from symbert.files import hash_of, read_json

RESULTS = "results"
SETTINGS = "settings.json"
KEY_DIGITS = 8
KEYED = re.compile(rf"-([0-9a-f]{{{KEY_DIGITS}}})$")  # the name of a folder
PLANNED_AGAIN = "run snakemake again, which plans it in another folder"


class File(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file or folder that a step reads: with a digest its content counts, else its path."""

    path: str  # from the folder with results/; `embedded:…` in the package
    sha256: str | None = None


class Step(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    dict=True,  # for cached properties
    tag=True,
    tag_field="step",
):
    """The fields of a subclass determine the content of its folder: settings, `File`s, and other steps.

    A field that has its default is left out of settings and key, so that a new field changes no old key.
    """

    version: int = 1
    """Of the code that makes the files. The commit that changes their content raises it: `version: int = raised(2)`, in
    a class with `kw_only=True`."""

    place: ClassVar[str] = ""  # the folder below results/, without the key
    files: ClassVar[dict[str, str]] = {}  # those that a job makes, by name; with wildcards of several jobs

    def __post_init__(self) -> None:
        if self.version != version_of(type(self)):
            raise ValueError(f"has version {self.version}, this project has {version_of(type(self))}")

    @classmethod
    def outputs(cls) -> dict[str, str]:
        """The files that a rule makes, of whichever key."""
        return {name: f"{RESULTS}/{cls.place}-{{key}}/{file}" for name, file in cls.files.items()}

    def reads(self) -> list[str]:
        """The paths that a job waits for."""
        return []

    @cached_property
    def key(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of all fields."""
        return hash_of(without_paths(msgspec.to_builtins(self)))[:KEY_DIGITS]

    @property
    def folder(self) -> str:
        """Where the files lie, from the folder with results/."""
        return f"{RESULTS}/{self.place}-{self.key}"

    @property
    def settings_file(self) -> str:
        """The step itself, in its folder."""
        return f"{self.folder}/{SETTINGS}"

    def paths(self, **wildcards: str) -> dict[str, str]:
        """The files of a job."""
        return {name: f"{self.folder}/{file.format(**wildcards)}" for name, file in self.files.items()}


@cache
def version_of(cls: type[Step]) -> int:
    """The version of the code that makes the files of a class of steps today."""
    field = next(field for field in msgspec.structs.fields(cls) if field.name == "version")
    version: int = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return version


def raised(version: int) -> Any:
    """The default of a field `version` above 1, which settings and key then have."""
    return msgspec.field(default_factory=lambda: version)


def without_paths(value: Any) -> Any:
    """Encoded settings without the paths of files that have a digest: a file may be moved or renamed."""
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: without_paths(item) for name, item in value.items() if name != "path" or "sha256" not in value}


AnyStep = TypeVar("AnyStep", bound=Step)


def read_step(folder: Path, cls: type[AnyStep] | Any) -> AnyStep:
    """The step, of a class or of a union of classes, that settings.json of a folder holds.

    ConfigError where another version of this project planned it, and where the folder's name has another key.
    """
    file = folder / SETTINGS
    step: AnyStep = step_in(file, cls)
    if step.key not in keys_of(folder):
        raise other_key(file, step)
    return step


def keys_of(folder: Path) -> set[str]:
    """The keys that end the names of a folder and of the one that it is a link to; none where neither has one."""
    names = folder.absolute().name, folder.resolve().name
    return {found[1] for name in names if (found := KEYED.search(name))}


def step_in(file: Path, cls: type[AnyStep] | Any) -> AnyStep:
    """The step in a file, wherever it lies; ConfigError where another version of this project planned it."""
    try:
        step: AnyStep = msgspec.convert(read_json(file, dict, "run snakemake again"), cls)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {mistake_in(error, remedy=PLANNED_AGAIN)}") from None
    return step


def other_key(file: Path, step: Step) -> ConfigError:
    """The refusal of a step in a folder whose name has another key."""
    said = f"has the key {step.key} here, another version of this project planned it"
    return ConfigError(f"{file}: {said}; {PLANNED_AGAIN}")


def fields_of(step: msgspec.Struct) -> dict[str, Any]:
    """All that determines a result, by dotted names: values of the step, of its settings, and of the steps it reads.

    Fields that have their default are among them; `step` of a nested step is the name of its class.
    """
    return dict(_fields(step, ""))


def _fields(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, msgspec.Struct):
        yield name, value
        return
    if isinstance(value, Step):
        yield f"{name}.step".removeprefix("."), type(value).__name__
    for field in value.__struct_fields__:
        yield from _fields(getattr(value, field), f"{name}.{field}".removeprefix("."))
