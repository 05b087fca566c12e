"""What stands in a module that is not imported, because importing torch takes seconds: read from its source."""

import ast
import copy
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError

PROJECT = __package__
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
Place = tuple[str, str]  # a module, and a name that it defines at its top level


def syntax_of(module: str, name: str) -> list[list[Any]]:
    """What a class or function computes, as lists: its syntax and that of all it names, by module and name.

    That is all of its own package and of this project, what it inherits first of all, and ends where torch and
    transformers begin. Blanks, comments, docstrings and `description` do not count.
    """
    covered: dict[Place, list] = {}
    _cover((module, name), covered)
    return [[*place, syntax] for place, syntax in sorted(covered.items())]


def keys_of(module: str, table: str) -> tuple[str, ...]:
    """The keys of a dict that a module writes out at its top level."""
    (statement,) = (each for each in _statements(module) if not isinstance(each, IMPORTS) and table in _bound(each))
    return tuple(ast.literal_eval(key) for key in statement.value.keys)


def classes_of(module: str, base: str) -> list[str]:
    """The classes of a module that inherit from its class `base`, in their order."""
    heirs = [base]
    for statement in _statements(module):
        if isinstance(statement, ast.ClassDef) and any(ast.unparse(each) in heirs for each in statement.bases):
            heirs.append(statement.name)
    return heirs[1:]


def class_named(module: str, name: str) -> ast.ClassDef:
    """The definition of a class, also where the module imports it. ConfigError for an unknown class."""
    file = file_of(module)
    if file is None:
        raise ConfigError(
            f"no module {module} for the operator {module}:{name}; correct the path, or put the module into this folder"
        )
    for definition in _definitions(module).get(name, []):
        if isinstance(definition, ast.ClassDef):
            return definition
        for place in _imported(definition, module)[name] if isinstance(definition, IMPORTS) else []:
            return class_named(*place)
    raise ConfigError(f"{file}: no class {name} in it; correct the operator's path {module}:{name}")


def sentence_of(module: str, name: str) -> str:
    """The first sentence of a function's docstring."""
    functions = (each for each in _statements(module) if isinstance(each, ast.FunctionDef))
    words = " ".join(ast.get_docstring(next(each for each in functions if each.name == name)).split())
    return re.split(r"(?<=[^.]\.) ", words, maxsplit=1)[0]


def _cover(place: Place, covered: dict[Place, list]) -> None:
    """Add what defines a name, and every covered name that occurs therein."""
    module, name = place
    definitions = [_without_description(definition) for definition in _definitions(module).get(name, [])]
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


def _without_description(definition: ast.stmt) -> ast.stmt:
    """A definition without what a class says of its operator for tables and figures."""
    if not isinstance(definition, ast.ClassDef):
        return definition
    bare = copy.copy(definition)
    bare.body = [each for each in definition.body if not ast.unparse(each).startswith("description = Description(")]
    return bare


@cache
def _definitions(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of a module that bind each name at its top level; imports that are not covered do not count."""
    statements: dict[str, list[ast.stmt]] = {}
    for statement in _statements(module):
        names = _imported(statement, module) if isinstance(statement, IMPORTS) else dict.fromkeys(_bound(statement))
        for name in names:
            statements.setdefault(name, []).append(statement)
    return statements


@cache
def _statements(module: str) -> list[ast.stmt]:
    """The top level of a module. ConfigError for one that Python cannot read."""
    file = file_of(module)
    try:
        return ast.parse(file.read_text(encoding="utf-8"), str(file)).body
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not Python ({error}); correct it") from None


@cache
def file_of(module: str) -> Path | None:
    """The source of a module, without importing it; None for a module without source."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    for word in rest:
        folders = spec and spec.submodule_search_locations
        spec = PathFinder.find_spec(f"{spec.name}.{word}", folders) if folders else None
    return Path(spec.origin) if spec and (spec.origin or "").endswith(".py") else None


def _is_covered(module: str, by: str) -> bool:
    """Whether a module belongs to what another one computes: to its package, or to this project."""
    return module.split(".")[0] in (PROJECT, by.split(".")[0]) and file_of(module) is not None


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
    """The names that an import of covered modules binds, each with what it stands for: a name of a module, or all names
    of a module."""
    places: dict[str, list[Place]] = {}
    parent = _parent(statement, module) if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if parent and _is_covered(parent, module) and alias.name == "*":
            places |= {name: [(parent, name)] for name in _definitions(parent)}
        elif parent and _is_covered(parent, module) and alias.name in _definitions(parent):
            places[alias.asname or alias.name] = [(parent, alias.name)]
        elif _is_covered(whole := f"{parent}.{alias.name}" if parent else alias.name, module):
            bound = places.setdefault(alias.asname or alias.name.split(".")[0], [])
            bound += [(whole, name) for name in _definitions(whole)]
    return places


def _parent(statement: ast.ImportFrom, module: str) -> str:
    """The module that names are imported from, also where dots say how far it is from the one that imports."""
    if not statement.level:
        return statement.module or ""
    parts = [*module.split("."), *(["__init__"] if file_of(module).name == "__init__.py" else [])]
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
    filled = {name: _syntax(value) for name, value in fields.items() if value not in (None, []) and name != "ctx"}
    return [type(node).__name__, *filled.items()]
