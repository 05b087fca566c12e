"""The attention operators by name: where the class of each is, its code, and what tables and figures say of it.

Classes are read from their source and not imported, because torch takes seconds.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from symbert.declared import suggestion
from symbert.errors import ConfigError
from symbert.files import hash_of
from symbert.syntax import (
    classes_of,
    code_of,
    constructor_of,
    defaults_of,
    definition_of,
    file_of,
    keys_of,
    look_in_this_folder,
    unfollowed,
)

BUILT_IN = "symbert.model.attention"  # the module with the operators of this project
SET_WIDTH = "symbert.model.start", "set_width"  # the function that gives an operator its start
# The syntax of formulas: whole numbers are names of fractions, so that 1/3 is exact.
FORMULA = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Name, ast.Load)
IMPORT_PATH = re.compile(r"\w[\w.]*:\w+")
NUMBER = re.compile(r"(?<!\w)\d+")
LINES = keys_of("symbert.report.style", "LINES")


@dataclass(frozen=True)
class Description:
    """What tables and figures say of an operator, beside the formula of its logits in its class's docstring.

    All of it may be missing. It is written in literals and is no part of the operator's code.
    """

    parameters: str = ""  # of query, key, value and factors of a layer, with biases; h: hidden size, n: heads
    leading: str = ""  # the terms of `parameters` that grow with h²
    control_of: str = ""  # the operator whose parameters this one has, and from which it differs in one respect
    scaled: str = ""  # the weights that a start of a given width multiplies: "query key"
    color: str = ""  # of its curves
    marker: str = ""  # as matplotlib calls it
    line: str = ""  # a name in symbert.report.style.LINES


@dataclass(frozen=True)
class Operator:
    """An attention operator under its name in tables."""

    name: str
    path: str  # module:Class
    arguments: dict[str, Any] = field(default_factory=dict)  # with which the class is called, beside a configuration
    start: str | float | None = None  # width of its initial logits: narrow, wide or a number; None: its class's

    @property
    def is_of_project(self) -> bool:
        """Whether its class is one of this project, under whatever name."""
        return self.path.startswith(f"{BUILT_IN}:")

    @cached_property
    def _class(self) -> ast.ClassDef:
        return definition_of(*self.path.split(":"))

    @cached_property
    def summary(self) -> str:
        """The first line of the docstring; the name where there is none."""
        return (ast.get_docstring(self._class) or self.name).splitlines()[0]

    @cached_property
    def formula(self) -> str | None:
        """The logits of two tokens: what the summary begins with, up to its colon or a comma outside of parentheses."""
        return re.split(r":|,(?![^(]*\))", self.summary)[0] if ":" in self.summary else None

    @cached_property
    def description(self) -> Description:
        """What its class says for tables and figures. ConfigError when that is no `Description` of literals.

        A class of this project under a name of the user's own is a control, in the colour of its class.
        """
        description = Description()
        for statement in self._class.body:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if isinstance(statement, ast.Assign | ast.AnnAssign) and ast.unparse(targets[0]) == "description":
                try:
                    values = {word.arg: ast.literal_eval(word.value) for word in statement.value.keywords}
                    description = Description(**values)
                    if any(not isinstance(value, str) for value in values.values()):
                        raise TypeError(f"{values} are not all texts")
                    if description.line and description.line not in LINES:
                        raise ValueError(f"'{description.line}' is no line; choose from {', '.join(LINES)}")
                except (AttributeError, TypeError, ValueError) as error:
                    raise ConfigError(
                        f"{self.path}: 'description', line {statement.lineno}: {error}; write Description(key=value, "
                        "…) with literals"
                    ) from None
        if self.is_of_project and not self.is_built_in:
            return replace(description, control_of=name_of(self.path.split(":")[1]), marker="", line="")
        return description

    @property
    def counted_as(self) -> Description:
        """The description with the formulas of its parameters: its own, or that of the operator it is a control of.

        ConfigError where that is not known, or is one of itself.
        """
        described, names = self.description, [self.name]
        while described.control_of:
            if described.control_of in names:
                raise ConfigError(
                    f"{self.path}: 'description' has control_of='{described.control_of}', itself; correct it"
                )
            names.append(described.control_of)
            described = operator_named(described.control_of).description
        return described

    def count(self, hidden_size: int, heads: int) -> int | None:
        """Parameters of one layer by the formula; None where the class states none."""
        formula, values = self.counted_as.parameters, {**self.defaults, **self.arguments, "h": hidden_size, "n": heads}
        return evaluate(formula, values) if formula else None

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The literals that the class takes where an argument is not given; none where its source does not say."""
        taken, values = constructor_of(*self.path.split(":")), {}
        for name, default in defaults_of(taken).items() if taken else ():
            with suppress(ValueError):  # another expression
                values[name] = ast.literal_eval(default)
        return values

    @cached_property
    def code(self) -> str:
        """16 hexadecimal digits that stand for what it computes: its code, its arguments and its start."""
        code = code_of(*self.path.split(":"))
        if self.start is not None:
            return hash_of(code, self.arguments, self.start, self.counted_as.scaled, code_of(*SET_WIDTH))
        return hash_of(code, self.arguments) if self.arguments else code

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of this project: a class of its own module, under that class's name."""
        return self.is_of_project and self.name == name_of(self.path.split(":")[1])

    @property
    def unfollowed(self) -> list[str]:
        """Where a class of the user's own runs more than its code covers, as `file, line: code`."""
        return [] if self.is_of_project else unfollowed(*self.path.split(":"))

    @property
    def own_definition(self) -> dict[str, Any]:
        """Under `operator` the class, start and arguments of one of the user's own; nothing for one of this project."""
        start = {} if self.start is None else {"start": self.start}
        return {} if self.is_built_in else {"operator": {"class": self.path, **start, **self.arguments}}


def name_of(class_name: str) -> str:
    """The name of an operator by its class: `LowRank` and `LowRankAttention` are low-rank."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|\d+", class_name.removesuffix("Attention"))
    return "-".join(words).lower()


OPERATORS: dict[str, Operator] = {
    name_of(word): Operator(name_of(word), f"{BUILT_IN}:{word}") for word in classes_of(BUILT_IN, "SelfAttention")
}


def define(name: str, definition: dict[str, Any]) -> Operator:
    """Make an operator of the user's own known to this process by its name.

    `definition` has the import path of its class (`class: my_package.operators:LowRank`), or the name of an operator of
    this project, and its arguments. `start` is none of them: it is the width of the initial logits. ConfigError for a
    name that another operator has, for an unknown class, and for a start that is no width.
    """
    arguments = {key: value for key, value in definition.items() if key not in ("class", "start")}
    known, start = OPERATORS.get(definition["class"]), definition.get("start")
    new = Operator(name, known.path if known and known.is_built_in else definition["class"], arguments, start)
    if not (start in (None, "narrow", "wide") or (type(start) in (int, float) and start > 0)):
        raise ConfigError(f"attention '{name}': 'start' is {start!r}, expected narrow, wide or a number above 0")
    if OPERATORS.get(name, new) != new:
        raise ConfigError(
            f"attention '{name}' is {OPERATORS[name].path} already; give {new.path} a name of its own: "
            f"operators: {{NAME: {{class: {new.path}}}}}"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ConfigError(f"attention '{name}': no name of a folder; name it with letters, digits, '-', '_' and '.'")
    module, _, word = new.path.partition(":")
    if not IMPORT_PATH.fullmatch(new.path) or module.endswith(".py"):
        raise ConfigError(f"attention '{name}': {new.path} is no import path; {_meant_by(new.path)}")
    look_in_this_folder()
    definition_of(module, word)
    refuse_arguments(new)
    OPERATORS[name] = new
    return new


def _meant_by(text: str) -> str:
    """The remedy for a text that names no class: the path of a file, with blanks, or with a dot for the colon."""
    module, _, word = "".join(text.split()).replace("/", ".").rpartition(":" if ":" in text else ".")
    path = f"{module.removesuffix('.py').strip('.')}:{word}"
    if IMPORT_PATH.fullmatch(path):
        return f"write {path}"
    return "write my_module:Class" + ("" if ":" in text else suggestion(name_of(text), OPERATORS))


def refuse_arguments(operator: Operator) -> None:
    """ConfigError for arguments that the class does not take, and for one that it needs; where its source says."""
    taken = constructor_of(*operator.path.split(":"))
    if taken is None:
        return
    place, given = f"attention '{operator.name}': {operator.path}", operator.arguments
    known = [each.arg for each in (*taken.posonlyargs, *taken.args)][2:]  # after self and the configuration
    known, optional = [*known, *(each.arg for each in taken.kwonlyargs)], defaults_of(taken)
    if missing := [name for name in known if name not in (*optional, *given)]:
        raise ConfigError(
            f"{place} needs {' and '.join(missing)}; write operators: {{{operator.name}: {{class: {operator.path}, "
            f"{missing[0]}: …}}}}"
        )
    if taken.kwarg is None and (unknown := [name for name in given if name not in known]):
        remedy = suggestion(unknown[0], known) if known else "; leave it out"
        raise ConfigError(f"{place} takes no argument '{unknown[0]}'{remedy}")


def operator_named(name: str) -> Operator:
    """The operator of that name; ConfigError names the nearest one, and nothing falls back to `original`."""
    if name not in OPERATORS:
        raise ConfigError(
            f"attention '{name}' is unknown: define it under 'operators', or name its class as module:Class"
            f"{suggestion(name, OPERATORS)}"
        )
    return OPERATORS[name]


def operator_of(config: Mapping[str, Any]) -> Operator:
    """The operator that a model's config.json names, and defines where it is the user's own.

    ConfigError for a class among the files of the checkpoint: that would run code of the checkpoint's author.
    """
    name, definition, folder = config["attention"], config.get("operator"), config.get("_name_or_path")
    if definition is None:
        return operator_named(name)
    own = define(name, definition)
    file = file_of(own.path.split(":")[0]).resolve()
    if folder and file.is_relative_to(Path(folder).resolve()):
        raise ConfigError(f"{file}: lies in the checkpoint that names it as its operator; move it if you trust it")
    return own


def planned_operator(name: str, facts: Mapping[str, Any], origin: Path) -> Operator:
    """The operator of settings with its `operator_code` and, of one of the user's own, its definition.

    ConfigError, which names the file `origin`, where its code was edited since: the folder's key is of other code.
    """
    operator = operator_of({"attention": name, "operator": facts.get("operator")})
    if operator.code != facts["operator_code"]:
        raise ConfigError(
            f"{origin}: the code of '{name}' is {operator.code} today, and was {facts['operator_code']} when this was "
            "planned; run snakemake again, which computes it in another folder"
        )
    return operator


def unfollowed_code(texts: Iterable[str] = ()) -> list[str]:
    """A line for each operator and each of these texts (module:function) of the user's own that runs more than its code
    covers: a change there makes nothing again."""
    found = {f"attention '{operator.name}'": operator.unfollowed for operator in OPERATORS.values()}
    found |= {f"text '{path}'": unfollowed(*path.split(":")) for path in texts}
    return [
        f"{name}: {', '.join(outside)} brings in what is not in its code; after a change of that, rename the class or "
        "function"
        for name, outside in found.items()
        if outside
    ]


def operator_code(name: str) -> str:
    """16 hexadecimal digits that stand for what the operator of that name computes."""
    return operator_named(name).code


def evaluate(formula: str, values: Mapping[str, Any]) -> int:
    """The value of a formula such as `2(h² + h) + h²/n`, whose letters are `values`. ConfigError for another text."""
    text = formula.translate(str.maketrans({"²": "**2", "³": "**3", "·": "*", "×": "*", "−": "-"}))
    text = re.sub(r"(?<=[\w)])\s*(?=\()|(?<=\))\s*(?=\w)|(?<=\d)\s*(?=[^\W\d])|(?<=\w)\s+(?=\w)", "*", text)

    try:
        tree = ast.parse(NUMBER.sub(r"_\g<0>", text.strip()), mode="eval")
        if not all(isinstance(node, FORMULA) for node in ast.walk(tree)):
            raise ValueError("has more than whole numbers, letters, + - · / and powers in it")
        numbers = {name: Fraction(value) for name, value in values.items() if isinstance(value, int | float)}
        numbers |= {f"_{digits}": Fraction(digits) for digits in NUMBER.findall(text)}
        return int(eval(compile(tree, "formula", "eval"), {"__builtins__": {}}, numbers))
    except (SyntaxError, TypeError, ValueError, NameError, ArithmeticError) as error:
        raise ConfigError(f"formula of parameters '{formula}': {error}; write it as 2(h² + h) + h²/n") from None
