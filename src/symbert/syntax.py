"""What an attention operator's code is, as a hash of its syntax: read from the source, because torch takes seconds."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError
from symbert.settings import hash_of

PACKAGE = Path(__file__).parent
OPERATORS = "symbert.model.attention"  # the module that has ATTENTION
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
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
        raise ConfigError(f"attention '{attention}' is unknown; choose from {', '.join(classes)}")
    covered: dict[Place, list] = {}
    _cover((OPERATORS, classes[attention]), covered)
    return hash_of([[*place, syntax] for place, syntax in sorted(covered.items())])


def _cover(place: Place, covered: dict[Place, list]) -> None:
    """Add what defines a name, and every name of this project that occurs therein."""
    module, name = place
    definitions = _definitions(module).get(name, [])
    if place in covered or not definitions:
        return
    covered[place] = [_syntax(definition) for definition in definitions]
    for definition in definitions:
        if isinstance(definition, ast.ImportFrom):
            origin = next(alias.name for alias in definition.names if _bound(alias) == name)
            _cover((definition.module, origin), covered)
        else:
            for node in ast.walk(definition):
                if isinstance(node, ast.Name):
                    _cover((module, node.id), covered)


@cache
def _definitions(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of a module of this project that bind each name at its top level; imports from elsewhere do not
    count."""
    path = PACKAGE.parent / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found: dict[str, list[ast.stmt]] = {}
    for statement in ast.parse(file.read_text(encoding="utf-8"), str(file)).body:
        for name in dict.fromkeys(_names(statement)):
            found.setdefault(name, []).append(statement)
    return found


def _names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.ImportFrom):
        if (statement.module or "").split(".")[0] == PACKAGE.name:
            yield from map(_bound, statement.names)
    elif isinstance(statement, DEFINITIONS):
        yield statement.name
    else:
        for node in ast.walk(statement):
            if isinstance(node, DEFINITIONS):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _bound(alias: ast.alias) -> str:
    """The name that an import gives."""
    return alias.asname or alias.name


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
