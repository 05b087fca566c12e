"""What an attention operator's code is, as a hash of its syntax: read from the source, because torch takes seconds."""

import ast
import difflib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError
from symbert.settings import hash_of

PACKAGE = Path(__file__).parent
OPERATORS = "symbert.model.attention"  # the module that has ATTENTION
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
Place = tuple[str, str]  # a module of this project, and a name that it defines at its top level


@cache
def operator_code(attention: str) -> str:
    """16 hexadecimal digits that stand for what an operator computes.

    They cover its class and all of this project that the class names, what it inherits first of all, and end where
    torch and transformers begin. Blanks, comments and docstrings do not count. ConfigError for an unknown operator.
    """
    registry = _definitions(OPERATORS)["ATTENTION"][0].value
    classes = {key.value: value.id for key, value in zip(registry.keys, registry.values, strict=True)}
    if attention not in classes:
        raise unknown_operator(attention, list(classes))
    covered: dict[Place, list] = {}
    _cover((OPERATORS, classes[attention]), covered)
    return hash_of([[*place, syntax] for place, syntax in sorted(covered.items())])


def unknown_operator(attention: str, known: list[str]) -> ConfigError:
    """What a word is refused with that is no operator: it names the nearest one, and there is no silent fallback."""
    near = difflib.get_close_matches(attention, known, n=1) or known
    return ConfigError(f"attention '{attention}' is unknown; did you mean {' or '.join(near)}?")


def _cover(place: Place, covered: dict[Place, list]) -> None:
    """Add what defines a name, and every name of this project that occurs therein."""
    module, name = place
    definitions = _definitions(module).get(name, [])
    if place in covered or not definitions:
        return
    covered[place] = [_syntax(definition) for definition in definitions]
    for definition in definitions:
        if isinstance(definition, IMPORTS):
            places = _imported(definition, module)[name]
        else:
            places = [(module, node.id) for node in ast.walk(definition) if isinstance(node, ast.Name)]
        for further in places:
            _cover(further, covered)


@cache
def _definitions(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of a module of this project that bind each name at its top level; imports from elsewhere do not
    count."""
    found: dict[str, list[ast.stmt]] = {}
    file = _file_of(module)
    for statement in ast.parse(file.read_text(encoding="utf-8"), str(file)).body:
        names = _imported(statement, module) if isinstance(statement, IMPORTS) else dict.fromkeys(_bound(statement))
        for name in names:
            found.setdefault(name, []).append(statement)
    return found


def _file_of(module: str) -> Path | None:
    """The file of a module; None where there is none in this project."""
    path = PACKAGE.parent / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file if module.split(".")[0] == PACKAGE.name and file.is_file() else None


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, which is no import."""
    if isinstance(statement, DEFINITIONS):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _imported(statement: ast.Import | ast.ImportFrom, module: str) -> dict[str, list[Place]]:
    """The names that an import of this project's modules binds, each with what it stands for: a name of a module, or
    all names of a module."""
    found: dict[str, list[Place]] = {}
    parent = _parent(statement, module) if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if parent and _file_of(parent) and alias.name == "*":
            found |= {name: [(parent, name)] for name in _definitions(parent)}
        elif parent and _file_of(parent) and alias.name in _definitions(parent):
            found[alias.asname or alias.name] = [(parent, alias.name)]
        elif _file_of(whole := f"{parent}.{alias.name}" if parent else alias.name):
            bound = found.setdefault(alias.asname or alias.name.split(".")[0], [])
            bound += [(whole, name) for name in _definitions(whole)]
    return found


def _parent(statement: ast.ImportFrom, module: str) -> str:
    """The module that names are imported from, also where dots say how far it is from the one that imports."""
    if not statement.level:
        return statement.module or ""
    parts = [*module.split("."), *(["__init__"] if _file_of(module).name == "__init__.py" else [])]
    return ".".join([*parts[: -statement.level], *([statement.module] if statement.module else [])])


def _syntax(node: Any) -> Any:
    """A syntax tree as lists: without docstrings and places, and without empty fields, which differ between Pythons."""
    if isinstance(node, list):
        return [_syntax(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    told = {name: _syntax(value) for name, value in fields.items() if value not in (None, []) and name != "ctx"}
    return [type(node).__name__, *told.items()]
