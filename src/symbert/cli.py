"""`symbert <command>`: the commands that people type, and one per rule.

Options of a command are the parameters of its function, each with its text as `Annotated[type, text]`; a
positional-only one is an argument without a name.
"""

import argparse
import gc
import inspect
import os
import pkgutil
import signal
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from symbert import __version__
from symbert.declared import suggestion
from symbert.errors import DataError, PreemptedError, SymbertError, TimeLimitError, UsageError, explain
from symbert.sources import check_hub_variables
from symbert.syntax import sentence_of

TYPED: dict[str, str] = {  # by people; a command and its function
    "evaluate": "symbert.report.evaluate:evaluate",
    "plan": "symbert.experiment.plan:plan",
    "status": "symbert.experiment.status:status",
    "prune": "symbert.experiment.prune:prune",
    "bundle": "symbert.report.bundle:bundle",
    "check-operator": "symbert.model.check:check_operator",
    "anatomy": "symbert.pretrain.anatomy:anatomy",
    "export": "symbert.glue.export:export",
    "export-classifier": "symbert.glue.export:export_classifier",
    "import-scores": "symbert.report.imported:import_scores",
    "paper": "symbert.report.imported:paper",
}
JOBS: dict[str, str] = {  # that rules run
    "download": "symbert.corpus.published:download",
    "build-blocklist": "symbert.corpus.blocklist:build_blocklist",
    "prepare-part": "symbert.corpus.parts:prepare_part",
    "pack": "symbert.corpus.shards:pack",
    "write-text": "symbert.corpus.texts:write_text",
    "pretrain": "symbert.pretrain.launch:pretrain",
    "choose-rates": "symbert.pretrain.tuning:choose_rates",
    "pretrain-together": "symbert.pretrain.launch:pretrain_together",
    "extract": "symbert.pretrain.extract:extract",
    "prepare-task": "symbert.glue.prepare:prepare_task",
    "score": "symbert.glue.score:score",
    "measure-speeds": "symbert.pretrain.speeds:measure_speeds",
    "measure-anatomy": "symbert.pretrain.anatomy:measure_anatomy",
    "report": "symbert.report.report:report",
}
COMMANDS = TYPED | JOBS
HELP = """\
usage: symbert COMMAND …

Looks at experiments, which Snakemake runs, and at their models and scores.

options:
  --help              show this text; symbert COMMAND --help has the options of a command
  --version           show the version

commands:
{commands}"""
ENDING = (signal.SIGTERM, signal.SIGHUP)  # a job is cancelled, a terminal closed; Ctrl-C may be pressed again
METAVARS = {Path: "PATH", str: "TEXT", int: "NUMBER", float: "NUMBER"}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code, which `symbert.errors` lists."""
    is_process = arguments is None  # of its own
    words = list(sys.argv[1:] if is_process else arguments)
    name = " ".join(["symbert", *words[:1]])
    if is_process:
        _answer((signal.SIGINT, *ENDING), _interrupt)
    try:
        return _run(name, words, is_process)
    except KeyboardInterrupt:
        _say(f"{name}: interrupted; the same command resumes\n")
        return PreemptedError.exit_code
    finally:
        if is_process:
            _answer((signal.SIGINT, *ENDING), signal.SIG_IGN)  # what is done is done


def _run(name: str, words: list[str], is_process: bool) -> int:
    """What `main` does, but for an interruption."""
    try:
        if not words or words[0].startswith("-"):
            return _help(words)
        function, options = _parse(*words)
        if is_process:
            _spare_pandas()
        function(*options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # of `symbert plan | head`: who reads it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DataError.exit_code
    except Exception as error:
        if isinstance(
            error.__cause__, Interrupted
        ):  # in the body of a class, by Python 3.11: "Error calling __set_name__"
            raise error.__cause__ from None
        code, message = explain(error)
        trace = traceback.format_exc() if code == SymbertError.exit_code else ""
        _say(f"{trace}{name}: {message}\n")
        if isinstance(error, TimeLimitError):
            from symbert.pretrain.launch import requeue

            requeue()
        return code


class Interrupted(KeyboardInterrupt):
    """Of its own kind: after a KeyboardInterrupt in `exec` of a text, as in the import of a dataclass, `python -m` ends
    by SIGINT, though it was caught (seen with Python 3.11, 3.12 and 3.13)."""


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    """Stop as after Ctrl-C, so that files are whole or absent; a signal that follows does not disturb that."""
    _answer(ENDING, signal.SIG_IGN)
    raise Interrupted


def _answer(numbers: Iterable[int], handler: Any) -> None:
    """Handle signals, but for those that the process was started to ignore, as with `nohup`."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _say(text: str) -> None:
    """Write to standard error at once: torchrun's processes are unbuffered. The exit code stays that of the failure
    where the disk of the log is full."""
    try:
        sys.stderr.write(text)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # or Python would end with 120


def load(command: str) -> Callable[..., None]:
    """The function behind a command; its module is imported only now. ConfigError for a variable that this would not
    survive."""
    check_hub_variables()
    # What libraries make stays: the collector would search it in vain, for 0.9 of 3.9 s of a report, 0.2 of a training.
    gc.disable()
    try:
        return pkgutil.resolve_name(COMMANDS[command])
    finally:
        gc.freeze()  # nor is it searched while the command works
        gc.enable()


def _spare_pandas() -> None:
    """Keep pyarrow from importing pandas for its first array, for which it asks once: 0.4 s of a job that reads rows.

    A command that works with data frames has imported pandas by now.
    """
    if "pyarrow" in sys.modules and "pandas" not in sys.modules:
        path, sys.path = sys.path, []  # where it does not find it; pyarrow fails with None in sys.modules
        sys.modules["pyarrow"].array([])
        sys.path = path


def _help(words: list[str]) -> int:
    """Print the version, or the commands that people type, each with the first sentence of its docstring."""
    if words == ["--version"]:
        print(f"symbert {__version__}")
    elif words in (["-h"], ["--help"]):
        listed = (f"  {name:<20}{sentence_of(*place.split(':'))}" for name, place in TYPED.items())
        print(HELP.format(commands="\n".join(listed)))
    else:
        raise UsageError(f"{' '.join(words) or 'no command'}; symbert --help lists the commands")
    return 0


def _parse(command: str, *words: str) -> tuple[Callable[..., None], list[Any]]:
    """The function of a command, and its arguments in their order."""
    if command not in COMMANDS:
        raise UsageError(f"no such command{suggestion(command, COMMANDS)}")
    function = load(command)
    described = {"description": inspect.getdoc(function), "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(f"symbert {command}", exit_on_error=False, **described)
    hints, parameters = typing.get_type_hints(function, include_extras=True), inspect.signature(function).parameters
    for name, parameter in parameters.items():
        hint, text = typing.get_args(hints[name])
        options = _value_options(hint) | {"help": text.replace("%", "%%")}
        is_optional = parameter.default is not parameter.empty
        if is_optional:
            options["default"] = parameter.default
        if parameter.default not in (parameter.empty, None, False):
            options["help"] += " (default: %(default)s)"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            options |= {"metavar": name.upper(), **({"nargs": "?"} if is_optional else {})}
            parser.add_argument(name, **options)
        else:
            parser.add_argument("--" + name.replace("_", "-"), dest=name, required=not is_optional, **options)
    try:
        values = parser.parse_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(str(error)) from None
    except SystemExit as stop:  # 0 after --help
        raise SystemExit(UsageError.exit_code if stop.code else 0) from None
    return function, [getattr(values, name) for name in parameters]


def _value_options(hint: Any) -> dict[str, Any]:
    """How argparse reads a parameter annotated with `hint`: T, T | None, list[T], or bool (a flag)."""
    if hint is bool:
        return {"action": "store_true"}
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not types.NoneType)
    if typing.get_origin(hint) is list:
        (item,) = typing.get_args(hint)
        return _value_options(item) | {"nargs": "+"}
    return {"type": hint, "metavar": METAVARS[hint]}
