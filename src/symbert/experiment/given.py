"""What a user gives: files of settings and the words of `--config`, read as Snakemake reads them."""

import json
import math
from collections.abc import Callable, Hashable, Iterable
from functools import partial, reduce
from pathlib import Path
from typing import Any, NoReturn

import yaml

from symbert.configuration import merge, quoted
from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import reading
from symbert.sources import Config


def read_yaml(path: Path) -> Config:
    """A file of settings: JSON or YAML. DataError when it is neither, MissingInputError when there is no file.

    ConfigError for what YAML would lose in silence: a key that stands twice in one place, of which the last counts, and
    a number that is another one than it looks, as 0340 (224), 12:30:00 (45000) and .inf.
    """
    with reading(path):
        content = path.read_bytes()
    try:
        text = content.decode()
        values = _json_or_yaml(text)
    except _Lost as error:
        raise ConfigError(f"{path}{error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason} at byte {error.start + 1}); save it as UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:  # the latter: a date of no calendar
        raise DataError(f"{path}{_not_yaml(error, text.splitlines())}") from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: holds no settings; write `key: value` lines, or {{}} for none")
    return values


def read_settings(path: Path) -> Config:
    """A file of settings whose texts stay texts where `configuration.resolve` reads what texts of `--config` spell."""
    values: Config = quoted(read_yaml(path))
    return values


def with_texts_of(path: Path, config: Config) -> Config:
    """A configuration that Snakemake merged of this file among others, with the file's texts as `read_settings` gives
    them."""
    settings = read_yaml(path)
    changed: Config = _with_texts(settings, quoted(settings), config)
    return changed


def _with_texts(plain: Any, settings: Any, config: Any) -> Any:
    if all(isinstance(value, dict) for value in (plain, settings, config)):
        return {name: _with_texts(plain.get(name), settings.get(name), item) for name, item in config.items()}
    return settings if settings != plain and plain == config else config


def check_options(words: Iterable[str]) -> None:
    """UsageError for what a command line has twice, of which Snakemake and argparse take the last alone: an option, and
    a key in one place of a section."""
    words = list(words)
    for word in words:
        if "={" in word:
            _assignment(word.removeprefix("--config="))
    given = [word.partition("=")[0] for word in words]
    for names in (("--config", "-C"), ("--configfile", "--configfiles")):
        if sum(word in names for word in given) > 1:
            raise UsageError(
                f"{names[0]}: stands there twice, and the first would be lost; write all after one of them"
            )


def read_words(words: Iterable[str]) -> Config:
    """`key=value` words as Snakemake's `--config` takes them; of a section that is given twice both count.

    A value is a number or a truth value if it looks so, whatever its quotes; else YAML whose leaves are texts, which
    `configuration.resolve` reads by their types. UsageError for a word without `=`.
    """
    return reduce(merge, map(_assignment, words), {})


def _assignment(word: str) -> Config:
    key, sign, text = word.partition("=")
    if not sign:
        raise UsageError(f"--config {word}: no value; write key=value")
    text = text.strip("'\"")
    for read in (int, float, {"": None, "True": True, "False": False}.__getitem__, _texts):
        try:
            return {key: read(text)}
        except _Lost as error:
            raise UsageError(f"--config {key}{error}") from None
        except (ValueError, KeyError, yaml.YAMLError):
            continue
    return {key: text}


def _texts(text: str) -> Any:
    return yaml.load(text, Loader=_Texts)


def _not_yaml(error: Exception, lines: list[str]) -> str:
    fact, mark = getattr(error, "problem", None) or str(error), getattr(error, "problem_mark", None)
    if not mark:
        return f": not YAML ({fact}); correct it"
    has_tab = "\t" in "".join(lines[mark.line : mark.line + 1])
    return f", line {mark.line + 1}: not YAML ({fact}); {'indent with blanks, not tabs' if has_tab else 'correct it'}"


class _Lost(Exception):
    """What a file says in vain: where in it, the fact, the remedy."""


def _json_or_yaml(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=partial(_strange, math.inf, ""))
    except ValueError:
        return yaml.load(text, Loader=_Loader)


def _unique(pairs: list[tuple[str, Any]]) -> Config:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise _twice(name, "")
    return dict(pairs)


def _twice(name: str, place: str) -> _Lost:
    return _Lost(f"{place}: the key '{name}' stands there a second time, and the first would be lost; make one of them")


def _strange(value: float, place: str, text: str) -> NoReturn:
    """Refuse a number of another value than it looks."""
    if not math.isfinite(value):
        raise _Lost(f"{place}: {text} is no number that settings have; write a finite one, as 1.0e+30")
    raise _Lost(
        f"{place}: {text} is the number {value} in YAML; write what is meant without colons or leading zeros, or "
        f"'{text}' for a text"
    )


class _Unique(yaml.constructor.BaseConstructor):
    """A loader of YAML in which no key is lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if (name := (key.tag, str(key.value))) in seen:
                raise _twice(key.value, _line(key))
            seen.add(name)
        return super().construct_mapping(node, deep)


class _Loader(_Unique, yaml.CSafeLoader):  # the one in C is thirty times as fast
    """YAML in which nothing is lost; as its base, it makes plain values alone."""


class _Texts(_Unique, yaml.BaseLoader):
    """YAML without numbers and objects."""


def _line(node: yaml.Node) -> str:
    return f", line {node.start_mark.line + 1}"


def _number(read: Callable[[str], float], tag: str) -> None:
    """Have the loader refuse numbers of a tag that Python does not read as YAML does."""

    def construct(loader: _Loader, node: yaml.ScalarNode) -> float:
        value: float = yaml.SafeLoader.yaml_constructors[tag](loader, node)
        try:
            is_plain = read(node.value) == value
        except ValueError:
            is_plain = False
        return value if is_plain else _strange(value, _line(node), node.value)

    _Loader.add_constructor(tag, construct)


_number(partial(int, base=0), "tag:yaml.org,2002:int")
_number(float, "tag:yaml.org,2002:float")
