"""The project's folder, wherever a command or Snakemake is run: its configuration, scales and rules."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Annotated

from symbert.configuration import Configuration, merge, resolve, typed
from symbert.declared import suggestion
from symbert.errors import ConfigError, MissingInputError, SymbertError, UsageError, explain
from symbert.experiment.given import check_options, read_settings, read_words, with_texts_of
from symbert.experiment.layout import CONFIGURATION, Experiment
from symbert.experiment.profile import check_profiles
from symbert.experiment.sweep import check_sweep
from symbert.experiment.unread import refuse_unread
from symbert.provenance import PROJECT
from symbert.sources import Config
from symbert.steps import RESULTS

# Options of commands that look at an experiment: Snakemake's, and --scale.
Scale = Annotated[str | None, "the scale (default: that of config.yaml)"]
ConfigFiles = Annotated[list[Path] | None, "files of settings, as after Snakemake's --configfile"]
ConfigWords = Annotated[list[str] | None, "settings as KEY=VALUE, as after Snakemake's --config"]


def read_config(folder: Path, *changes: Config) -> Configuration:
    """The checked configuration of a project's folder with `changes`, of which the last one decides."""
    return begun(whole(reduce(merge, changes, {}), folder), folder)


def whole(config: Config, folder: Path = PROJECT) -> Config:
    """All keys: of defaults.yaml, the scale, config.yaml and `config`, as the Snakefile reads them; the last one
    decides."""
    changes = read_settings(folder / "config.yaml"), config
    defaults = read_settings(folder / "workflow/defaults.yaml")
    scale = read_settings(scale_file(reduce(merge, changes, defaults), folder))
    return reduce(merge, [scale, *changes], defaults)


def checked(values: Config) -> Configuration:
    """The configuration of values by key, if it makes sense."""
    config = resolve(values)
    check_sweep(config)
    return config


def begun(values: Config, folder: Path = PROJECT) -> Configuration:
    """The configuration that is to run, if it makes sense and its sources and stages read all that its user changed."""
    config, scale = checked(values), read_settings(scale_file(values, folder))
    refuse_unread(typed(values), typed(merge(read_settings(folder / "workflow/defaults.yaml"), scale)))
    return config


def scale_file(config: Config, folder: Path = PROJECT) -> Path:
    """The file of the configured scale; ConfigError names the nearest."""
    scale, scales = str(config["scale"]), {path.stem: path for path in (folder / "workflow/scales").glob("*.yaml")}
    if scale not in scales:
        raise ConfigError(f"config: 'scale' is {scale!r}{suggestion(scale, sorted(scales))}")
    return scales[scale]


def read_chosen(
    folder: Path, scale: str | None, configfile: list[Path] | None, config: list[str] | None
) -> Configuration:
    """The configuration that Snakemake has with these of its options: `scale` stands for scale=…, and goes last."""
    check_options(sys.argv)
    chosen = {} if scale is None else {"scale": scale}
    return read_config(folder, *map(read_settings, configfile or []), read_words(config or []), chosen)


def read_experiment(
    scale: str | None, configfile: list[Path] | None, config: list[str] | None, name: str | None = None
) -> Experiment:
    """The experiment of a name in results/, as it was started last; else that which Snakemake would run in this folder
    with these options. UsageError for both, MissingInputError for an unknown name."""
    if name is None:
        return Experiment(read_chosen(PROJECT, scale, configfile, config))
    if scale or configfile or config:
        raise UsageError(f"{name}: is configured by results/{name}/{CONFIGURATION}; leave the other options out")
    file = Path(RESULTS, name, CONFIGURATION)
    if not file.is_file():
        names = sorted(path.parent.name for path in Path(RESULTS).glob(f"*/{CONFIGURATION}"))
        remedy = suggestion(name, names) or "; type it in the folder that has results/"
        raise MissingInputError(f"{file}: no experiment of that name{remedy}")
    return Experiment(checked(read_settings(file)))


@contextmanager
def one_line() -> Iterator[None]:
    """A mistake ends Snakemake with one line and its exit code."""
    try:
        yield
    except (SymbertError, OSError) as error:
        code, line = explain(error)
        print(f"symbert: {line}", file=sys.stderr)
        sys.exit(code)


@one_line()
def readable(file: str) -> str:
    """A file of settings that Snakemake is about to read, of whose mistakes it would name neither file nor line."""
    read_settings(Path(file))
    return file


@one_line()
def configured_scale(config: Config) -> str:
    """The file of the scale of a configuration that Snakemake is reading."""
    return str(scale_file(whole(config)))


@one_line()
def open_experiment(config: Config, files: Iterable[str | Path]) -> Experiment:
    """The experiment of a configuration that Snakemake has merged, of these files among others; or of the keys that
    another workflow gives to its module, for which Snakemake reads none of our files."""
    check_options(sys.argv)
    for file in dict.fromkeys(map(Path, files)):
        config = with_texts_of(file, config)
    check_profiles(PROJECT, sys.argv)
    return Experiment(begun(whole(config)))
