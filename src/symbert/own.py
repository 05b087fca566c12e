"""The user's own operators, sizes and tasks: known by name where the configuration is read, and in all commands.

A command is given names. What they stand for is in its environment, which Snakemake hands on to every job. A file
would have to be an input of every rule, and a new operator would then make all results anew. A command that is typed by
hand has `--own FILE`.
"""

import json
import os
from typing import Any

from symbert import operators, sizes, tasks
from symbert.declared import suggestion
from symbert.errors import ConfigError
from symbert.operators import OPERATORS
from symbert.sizes import SIZES
from symbert.suites import SUITES
from symbert.tasks import PUBLISHED, tasks_of_sweep

VARIABLE = "SYMBERT_OWN"  # of the environment: these keys of the configuration, as JSON
KEYS = ("operators", "sizes", "tasks")


def define_own(config: dict[str, Any]) -> None:
    """Make `operators`, `sizes` and `tasks` of a configuration known, here and to processes that start from here.

    In `sweep.attention`, the name of an operator replaces the import path of its class, and in `sweep.tasks` stand all
    that are fine-tuned. ConfigError for a name that
    another one has, for an unknown class, and for an unknown name in the sweep.
    """
    sweep, curve = config["sweep"], config["sweep"]["curve"]
    define(config)
    for position, word in enumerate(sweep["attention"]):
        if ":" in word:
            name = operators.name_of(word.partition(":")[2])
            operators.define(name, {"class": word})
            sweep["attention"][position], config["operators"][name] = name, {"class": word}
    _refuse_unknown("sweep.attention", sweep["attention"], list(OPERATORS))
    _refuse_unknown("sweep.probes", sweep["probes"], list(OPERATORS))
    _refuse_unknown("sweep.sizes", sweep["sizes"], list(SIZES))
    _refuse_unknown("sweep.curve.sizes", curve["sizes"], list(SIZES))
    _refuse_unknown("sweep.suites", sweep["suites"], list(SUITES))
    _refuse_unknown("sweep.tasks", sweep["tasks"], [*PUBLISHED, *config["tasks"]])
    sweep["tasks"] = tasks_of_sweep(sweep["suites"], sweep["tasks"])
    for name in curve["steps"].keys() - SIZES.keys():
        raise ConfigError(f"config: unknown key '{name}' in 'sweep.curve.steps'{suggestion(name, SIZES)}")
    define(config)


def inherit_own() -> None:
    """Make known what the process that started this one made known to it."""
    if VARIABLE in os.environ:
        define(json.loads(os.environ[VARIABLE]))


def define(own: dict[str, Any]) -> None:
    """Make the operators, sizes and tasks under KEYS known, here and to processes that start from here."""
    for name, shape in own["sizes"].items():
        sizes.define(name, shape)
    for name, definition in own["tasks"].items():
        tasks.define(name, definition)
    for name, definition in own["operators"].items():
        if not isinstance(definition.get("class"), str):
            raise ConfigError(f"config: 'operators.{name}' has no class; add class: my_package.my_module:Class")
        operators.define(name, definition)
    os.environ[VARIABLE] = json.dumps({key: own[key] for key in KEYS})


def _refuse_unknown(key: str, words: list[str], known: list[str]) -> None:
    for position, word in enumerate(words):
        if word not in known:
            raise ConfigError(f"config: '{key}.{position}' is {word!r}{suggestion(word, known)}")
