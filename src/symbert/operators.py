"""The attention operators by name: where the class of each is, its code, and what tables and figures say of it.

Classes are read from their source and not imported, because torch takes seconds. A class of this project has a
`version` as a literal in it, 1 where it has none: the commit that changes what it computes, or what a helper of it
computes, raises it. A class of the user's own is known by the syntax of its module.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from symbert.declared import mistake_in, suggestion
from symbert.errors import ConfigError
from symbert.syntax import (
    WHOLE,
    bases_of,
    classes_of,
    code_of,
    constructor_of,
    defaults_of,
    definition_of,
    file_of,
    keys_of,
    look_in_this_folder,
    named_by,
    unfollowed,
)

BUILT_IN = "symbert.model.attention"  # the module with the operators of this project
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
    scaled: str = ""  # the weights that an `init_scale` multiplies: "query key"
    color: str = ""  # of its curves
    marker: str = ""  # as matplotlib calls it
    line: str = ""  # a name in symbert.report.style.LINES


class Operator(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, dict=True):
    """An attention operator under its name in tables: all that determines what it computes, as settings of a run and
    config.json hold it."""

    name: str
    path: str  # module:Class
    arguments: dict[str, Any] = {}  # with which the class is called, beside a configuration
    init_scale: str | float | None = None  # width of its initial logits: narrow, wide or a number; None: its class's
    scaled: str = ""  # the weights that `init_scale` multiplies, as its description names them
    versions: dict[str, int] = {}  # above 1, of the classes of this project that it is made of
    code: str = ""  # 16 hexadecimal digits of the syntax of a module of the user's own

    @property
    def is_of_project(self) -> bool:
        """Whether its class is one of this project, under whatever name."""
        return self.path.startswith(f"{BUILT_IN}:")

    @cached_property
    def _class(self) -> ast.ClassDef:
        module, _, name = self.path.partition(":")
        return definition_of(module, name)

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
                    if not isinstance(statement.value, ast.Call):
                        raise TypeError("it is made by no call")
                    values = {str(word.arg): ast.literal_eval(word.value) for word in statement.value.keywords}
                    description = Description(**values)
                    if any(not isinstance(value, str) for value in values.values()):
                        raise TypeError(f"{values} are not all texts")
                    if description.line and description.line not in LINES:
                        raise ValueError(f"'{description.line}' is no line; choose from {', '.join(LINES)}")
                except (TypeError, ValueError) as error:
                    raise ConfigError(
                        f"{self.path}: 'description', line {statement.lineno}: {error}; write Description(key=value, "
                        "…) with literals"
                    ) from None
        if self.is_of_project and not self.is_built_in:
            return replace(description, control_of=name_of(self.path.split(":")[1]), marker="", line="")
        return description

    def counted_as(self, operators: Mapping[str, "Operator"]) -> Description:
        """The description with the formulas of its parameters: its own, or that of the operator it is a control of.

        ConfigError where it is one of itself.
        """
        described, names = self.description, [self.name]
        while described.control_of in operators:
            if described.control_of in names:
                raise ConfigError(
                    f"{self.path}: 'description' has control_of='{described.control_of}', itself; correct it"
                )
            names.append(described.control_of)
            described = operators[described.control_of].description
        return described

    def count(self, hidden_size: int, heads: int, operators: Mapping[str, "Operator"]) -> int | None:
        """Parameters of one layer by the formula; None where the class states none."""
        formula, given = self.counted_as(operators).parameters, {**self.defaults, **self.arguments}
        return evaluate(formula, {**given, "h": hidden_size, "n": heads}) if formula else None

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The literals that the class takes where an argument is not given; none where its source does not say."""
        taken, values = constructor_of(*self.path.split(":")), {}
        for name, default in defaults_of(taken).items() if taken else ():
            with suppress(ValueError):  # another expression
                values[name] = ast.literal_eval(default)
        return values

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of this project: a class of its own module, under that class's name."""
        return self.is_of_project and self.name == name_of(self.path.split(":")[1])

    @property
    def unfollowed(self) -> list[str]:
        """Where a class of the user's own runs more than its code covers, as `file, line: code`."""
        return [] if self.is_of_project else unfollowed(self.path.split(":")[0])

    def refuse_edited(self, origin: Path) -> None:
        """ConfigError, which names the file `origin` that has this operator, where its code was edited since."""
        look_in_this_folder()
        versions, code = versions_of(self.path), _code_of(self.path)
        if (versions, code) != (self.versions, self.code):
            then, today = (
                code or f"of version {versions or 1}"
                for versions, code in ((self.versions, self.code), (versions, code))
            )
            raise ConfigError(
                f"{origin}: the code of '{self.name}' is {today} today, and was {then}; put that code back, or run "
                "snakemake again, which trains it in another folder"
            )


def versions_of(path: str) -> dict[str, int]:
    """The versions above 1 of the classes of this project that a class inherits from or, of the user's own, that its
    modules name."""
    module, _, word = path.partition(":")
    names = {word} if module == BUILT_IN else named_by(module, BUILT_IN)
    if WHOLE in names:
        names = {*classes_of(BUILT_IN, "SelfAttention"), "SelfAttention"}
    names = {base for name in names for base in bases_of(BUILT_IN, name)}
    return {name: version for name in sorted(names) if (version := _version_of(name)) > 1}


def _version_of(name: str) -> int:
    """The version that a class of this project has as a literal in it."""
    for statement in definition_of(BUILT_IN, name).body:
        match statement:
            case ast.Assign([ast.Name("version")], ast.Constant(int(version))) | ast.AnnAssign(
                ast.Name("version"), _, ast.Constant(int(version))
            ):
                return version
    return 1


def _code_of(path: str) -> str:
    return "" if path.startswith(f"{BUILT_IN}:") else code_of(path.split(":")[0])


def name_of(class_name: str) -> str:
    """The name of an operator by its class: `LowRank` and `LowRankAttention` are low-rank."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|\d+", class_name.removesuffix("Attention"))
    return "-".join(words).lower()


OPERATORS: dict[str, Operator] = {  # of this project
    name_of(word): Operator(name_of(word), path, versions=versions_of(path))
    for word in classes_of(BUILT_IN, "SelfAttention")
    for path in [f"{BUILT_IN}:{word}"]
}


def operators_of(custom: Mapping[str, Mapping[str, Any]], words: Iterable[str] = ()) -> dict[str, Operator]:
    """The operators of this project and those of the user's own, by name.

    A definition in `custom` has the import path of a class (`class: my_package.operators:LowRank`), or the name of an
    operator of this project, and its arguments. `init_scale` is none of them: it is the width of the initial logits. Of
    `words`, those that are import paths of classes are operators, too. ConfigError for a name that another operator
    has, for an unknown class, for an `init_scale` that is no width, and for a description that cannot be read.
    """
    operators = dict(OPERATORS)
    definitions = [
        *custom.items(),
        *((name_of(word.partition(":")[2]), {"class": word}) for word in words if ":" in word),
    ]
    for name, definition in definitions:
        if not isinstance(definition.get("class"), str):
            raise ConfigError(f"config: 'operators.{name}' has no class; add class: my_package.my_module:Class")
        new = _defined(name, definition)
        if (known := operators.setdefault(name, new)) != new:
            raise ConfigError(
                f"attention '{name}' is {known.path} already; give {new.path} a name of its own: "
                f"operators: {{NAME: {{class: {new.path}}}}}"
            )
    for name in operators.keys() - OPERATORS.keys():  # all are known now, also as controls of each other
        described = operators[name].counted_as(operators)
        if described.control_of:
            raise _unknown(described.control_of, operators)
        operators[name].count(64, 2, operators)
        if operators[name].init_scale is not None:
            operators[name] = msgspec.structs.replace(operators[name], scaled=described.scaled)
    return operators


def _defined(name: str, definition: Mapping[str, Any]) -> Operator:
    """An operator of the user's own, by its definition."""
    arguments = {key: value for key, value in definition.items() if key not in ("class", "init_scale")}
    path, init_scale = definition["class"], definition.get("init_scale")
    path = OPERATORS[path].path if path in OPERATORS else path
    if not (init_scale in (None, "narrow", "wide") or (type(init_scale) in (int, float) and init_scale > 0)):
        raise ConfigError(
            f"attention '{name}': 'init_scale' is {init_scale!r}, expected narrow, wide or a number above 0"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ConfigError(f"attention '{name}': no name of a folder; name it with letters, digits, '-', '_' and '.'")
    module, _, word = path.partition(":")
    if not IMPORT_PATH.fullmatch(path) or module.endswith(".py"):
        raise ConfigError(f"attention '{name}': {path} is no import path; {_meant_by(path)}")
    look_in_this_folder()
    definition_of(module, word)
    init_scale = float(init_scale) if isinstance(init_scale, int) else init_scale
    new = Operator(name, path, arguments, init_scale, versions=versions_of(path), code=_code_of(path))
    refuse_arguments(new)
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
        remedy = suggestion(unknown[0], [*known, "init_scale"])
        raise ConfigError(f"{place} takes no argument '{unknown[0]}'{remedy}")


def operator_named(name: str, operators: Mapping[str, Operator] = OPERATORS) -> Operator:
    """The operator of that name; ConfigError names the nearest one, and nothing falls back to `original`."""
    if name not in operators:
        raise _unknown(name, operators)
    return operators[name]


def _unknown(name: str, operators: Mapping[str, Operator]) -> ConfigError:
    return ConfigError(
        f"attention '{name}' is unknown: define it under 'operators', or name its class as module:Class"
        f"{suggestion(name, operators)}"
    )


def operator_of(config: Mapping[str, Any]) -> Operator:
    """The operator that a model's config.json has; of one without, that of this project with the name.

    ConfigError for a class among the files of the checkpoint: that would run code of the checkpoint's author.
    """
    folder, name = config.get("_name_or_path"), config["attention"]
    if (encoded := config.get("operator")) is None:
        return operator_named(name)
    origin = Path(folder or "", "config.json")
    try:
        operator = msgspec.convert(encoded, Operator)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin}: 'operator': {mistake_in(error)}") from None
    if operator.name != name:
        raise ConfigError(f"{origin}: 'attention' is '{name}', but 'operator' is '{operator.name}'; correct it")
    look_in_this_folder()
    file = file_of(operator.path.split(":")[0])
    if file and folder and file.resolve().is_relative_to(Path(folder).resolve()):
        raise ConfigError(f"{file}: lies in the checkpoint that names it as its operator; move it if you trust it")
    return operator


def unfollowed_code(operators: Mapping[str, Operator], texts: Iterable[str] = ()) -> list[str]:
    """A line for each operator and each of these texts (module:function) of the user's own that runs more than its code
    covers: a change there makes nothing again."""
    found = {f"attention '{operator.name}'": operator.unfollowed for operator in operators.values()}
    found |= {f"text '{path}'": unfollowed(path.split(":")[0]) for path in texts}
    return [
        f"{name}: {', '.join(outside)} brings in what is not in its code; after a change of that, rename the class or "
        "function"
        for name, outside in found.items()
        if outside
    ]


def evaluate(formula: str, values: Mapping[str, Any]) -> int:
    """The value of a formula such as `2(h² + h) + h²/n`, whose letters are `values`. ConfigError for another text."""
    signs: dict[str, str | int | None] = {"²": "**2", "³": "**3", "·": "*", "×": "*", "−": "-"}
    text = formula.translate(str.maketrans(signs))
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
