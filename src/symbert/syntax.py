"""What stands in a module that is not imported, because importing torch takes seconds: read from its source."""

import ast
import copy
import importlib.util
import re
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from itertools import chain
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError

PROJECT = __package__
# The stand-in for transformers, and modules that say of operators and errors, not what an operator computes.
NO_CODE = tuple(f"{PROJECT}.{name}" for name in ("model.from_transformers", "operators", "errors"))
LIBRARIES = ("torch", "transformers", "numpy")  # no operator's code, also where they are installed from a local folder
# In a module, names of what runs when it is imported, of all that it defines, and of its imports of all names.
RUNS, WHOLE, STAR = "", ".", "*"
LEADING_AWAY = {  # functions and methods that read a file, or run code that is named elsewhere
    *("open", "read_text", "read_bytes", "load", "safe_load", "load_file", "fromfile", "loadtxt", "genfromtxt"),
    *(
        "memmap",
        "read_csv",
        "from_pretrained",
        "hf_hub_download",
        "load_library",
        "load_inline",
        "entry_points",
        "get_data",
    ),
    *("spec_from_file_location", "run_path", "run_module"),
}
IMPORTING = ("import_module", "__import__")
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
Place = tuple[str, str]  # a module, and a name that it defines at its top level


def syntax_of(module: str, name: str) -> list[list[Any]]:
    """What a class or function computes, as lists: its syntax and that of all it names, by module and name.

    Covered are this project, its own package and every local module, and nothing else that is installed. Functions,
    classes and constants count where they are named; the other statements that run when a local module is imported
    count whole. Blanks, comments, docstrings and `description` do not count.
    """
    reached = _reached((module, name))
    return [[*place, [_syntax(each) for each in definitions]] for place, definitions in sorted(reached.items())]


def unfollowed(module: str, name: str) -> list[str]:
    """Where the code of a class or function of the user's own goes beyond what `syntax_of` covers, as `file, line:
    code`: a module or attribute under a computed name, a file that is read, a local module without source."""
    own = {place: found for place, found in _reached((module, name)).items() if not _is_of(PROJECT, place[0])}
    nodes = [(place[0], node) for place, found in own.items() for statement in found for node in ast.walk(statement)]
    for reached in {place[0] for place in own}:  # all imports of its modules, also of what is not found
        imports = chain.from_iterable(map(_outside_functions, _statements(reached)))
        nodes += [(reached, node) for node in imports if isinstance(node, IMPORTS)]
    left = [(reached, node) for reached, node in nodes if _leaves(node)]
    return sorted({f"{file_of(reached).name}, line {node.lineno}: {ast.unparse(node)}" for reached, node in left})


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
    statements = _definitions(module)
    for definition in [*statements.get(name, []), *statements.get(STAR, [])]:
        for node in ast.walk(definition):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
            if isinstance(node, IMPORTS):
                for place in _imported(node, module).get(name, []):
                    return class_named(*place)
                for parent, _ in _imported(node, module).get(STAR, []):
                    with suppress(ConfigError):
                        return class_named(parent, name)
    raise ConfigError(f"{file}: no class {name} in it; correct the operator's path {module}:{name}")


def sentence_of(module: str, name: str) -> str:
    """The first sentence of a function's docstring."""
    functions = (each for each in _statements(module) if isinstance(each, ast.FunctionDef))
    words = " ".join(ast.get_docstring(next(each for each in functions if each.name == name)).split())
    return re.split(r"(?<=[^.]\.) ", words, maxsplit=1)[0]


def _reached(place: Place) -> dict[Place, list[ast.stmt]]:
    """The statements that define a name, and those of every covered name that occurs therein."""
    reached: dict[Place, list[ast.stmt]] = {}
    waiting = [place]
    while waiting:
        place = waiting.pop()
        if place in reached:
            continue
        module, name = place
        statements = _definitions(module)
        found = [_without_description(statement) for statement in statements.get(name, [])]
        reached[place] = [statement for statement in found if name != RUNS or _runs(statement)]
        waiting += _run_with(module)
        if name == WHOLE:
            waiting += [(module, each) for each in statements if each != RUNS]
            waiting += [(parent, WHOLE) for parent in _star_parents(module)]
        elif not found and name != RUNS:  # imported with all others, or made by the module when it is asked
            waiting += [(parent, name) for parent in _star_parents(module)] + [(module, "__getattr__")]
        for node in chain.from_iterable(map(_outside_functions, found if name == RUNS else [])):
            waiting += _run_by(node, module)
        for statement in reached[place]:
            if isinstance(statement, IMPORTS):
                waiting += _imported(statement, module)[name]
            else:
                waiting += _named(statement, module)
    return {place: statements for place, statements in reached.items() if statements}


def _named(statement: ast.stmt, module: str) -> Iterator[Place]:
    """All that a statement names: of its module, and by an import within it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield module, node.id
        elif isinstance(node, IMPORTS):
            yield from chain.from_iterable(_imported(node, module).values())
            yield from _run_by(node, module)
        elif (imported := _imported_by_call(node)) and _is_covered(imported, module):
            yield imported, WHOLE


def _run_by(node: ast.AST, module: str) -> Iterator[Place]:
    """What runs by an import."""
    if isinstance(node, IMPORTS):
        parents = [_parent(node, module)] if isinstance(node, ast.ImportFrom) else []
        for imported in (*parents, *(".".join([*parents, alias.name]) for alias in node.names)):
            if _is_covered(imported, module):
                yield from _run_with(imported)


def _run_with(module: str) -> list[Place]:
    """What runs when a local module is imported: of it, and of the packages that it lies in."""
    words = module.split(".")
    modules = [".".join(words[:count]) for count in range(1, 1 + len(words))]
    return [] if _is_of(PROJECT, module) else [(each, RUNS) for each in modules if file_of(each) is not None]


def _imported_by_call(node: ast.AST) -> str | None:
    """The module that a call of `importlib` imports by a name that is written out."""
    if isinstance(node, ast.Call) and _called(node) in IMPORTING and node.args:
        first = node.args[0]
        is_written_out = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return first.value if is_written_out and not first.value.startswith(".") else None
    return None


def _called(call: ast.Call) -> str:
    """The last word of what is called."""
    return getattr(call.func, "id", None) or getattr(call.func, "attr", "")


def _leaves(node: ast.AST) -> bool:
    """Whether code goes on where its syntax does not lead."""
    if isinstance(node, ast.Import):
        return any(_is_without_source(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        is_renamed = any(alias.asname and alias.name in (*LEADING_AWAY, *IMPORTING) for alias in node.names)
        return is_renamed or (not node.level and _is_without_source(node.module))
    if not isinstance(node, ast.Call):
        return False
    name = _called(node)
    if name in IMPORTING:
        return _imported_by_call(node) is None
    if name == "getattr" and len(node.args) > 1:
        of_itself = isinstance(node.args[0], ast.Name) and node.args[0].id in ("self", "cls")
        return not of_itself and not isinstance(node.args[1], ast.Constant)
    return name in LEADING_AWAY or (isinstance(node.func, ast.Name) and name in ("exec", "eval", "globals", "vars"))


def _without_description(definition: ast.stmt) -> ast.stmt:
    """A definition without what a class says of its operator for tables and figures."""
    if not isinstance(definition, ast.ClassDef):
        return definition
    bare = copy.copy(definition)
    bare.body = [each for each in definition.body if not ast.unparse(each).startswith("description = Description(")]
    return bare


@cache
def _definitions(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of a module's top level that bind or change each name, and under RUNS those that import or do
    more; imports that are not covered bind nothing."""
    statements: dict[str, list[ast.stmt]] = {}
    for statement in _statements(module):
        names = dict.fromkeys(() if isinstance(statement, IMPORTS) else _bound(statement))
        imports = [node for node in _outside_functions(statement) if isinstance(node, IMPORTS)]
        names |= dict.fromkeys(chain.from_iterable(_imported(node, module) for node in imports))
        names |= {RUNS: None} if imports or _runs(statement) else {}
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
    origin = getattr(_spec_of(module), "origin", None) or ""
    return Path(origin) if origin.endswith(".py") else None


def _spec_of(module: str) -> ModuleSpec | None:
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top) if top not in ("", "__main__") else None
    for word in rest:
        folders = spec and spec.submodule_search_locations
        spec = PathFinder.find_spec(f"{spec.name}.{word}", folders) if folders else None
    return spec


def is_local(file: Path) -> bool:
    """Whether a file is the user's own: none of Python's, of this project, or of an installed package."""
    installed = {"site-packages", "dist-packages"} & {*file.parts}
    others = Path(sysconfig.get_path("stdlib")), Path(__file__).parent
    return not installed and not any(file.is_relative_to(folder) for folder in others)


def _is_of(package: str, module: str) -> bool:
    return module.split(".")[0] == package


def _is_covered(module: str, by: str) -> bool:
    """Whether a module belongs to what another one computes: to its package, to this project, or to the user."""
    if module in NO_CODE or module.split(".")[0] in LIBRARIES or (file := file_of(module)) is None:
        return False
    return _is_of(PROJECT, module) or _is_of(by.split(".")[0], module) or is_local(file)


def _is_without_source(module: str) -> bool:
    """Whether a local module is compiled, or lies where only the running code will look for it."""
    if _spec_of(module.split(".")[0]) is None:
        return True
    spec = _spec_of(module)
    return spec is not None and spec.has_location and file_of(module) is None and is_local(Path(spec.origin))


def _outside_functions(statement: ast.AST) -> Iterator[ast.AST]:
    """A statement and all within it that runs with it."""
    yield statement
    if not isinstance(statement, DEFINITIONS):
        for node in ast.iter_child_nodes(statement):
            yield from _outside_functions(node)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds or changes, which is no import."""
    if isinstance(statement, DEFINITIONS):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or isinstance(statement, ast.Expr)):
            yield node.id
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            if isinstance(node, ast.Name):
                yield node.id


def _runs(statement: ast.stmt) -> bool:
    """Whether a statement of a top level may do more than bind names, so that it counts without being named."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return bool(statement.decorator_list or getattr(statement, "keywords", None))
        case ast.Expr(ast.Constant()) | ast.Pass():
            return False
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return any(
                isinstance(node, ast.Call)
                or (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store))
                for node in ast.walk(statement)
            )
        case ast.Import() | ast.ImportFrom():
            return False
        case ast.If(test):
            is_program = ast.unparse(test) == "__name__ == '__main__'"
            return not is_program and any(map(_runs, [*statement.body, *statement.orelse]))
        case ast.Try():
            handled = [inner for handler in statement.handlers for inner in handler.body]
            return any(map(_runs, [*statement.body, *handled, *statement.orelse, *statement.finalbody]))
    return True


def _imported(statement: ast.Import | ast.ImportFrom, module: str) -> dict[str, list[Place]]:
    """The names that an import of covered modules binds, each with what it stands for: a name of a module, or all names
    of a module."""
    places: dict[str, list[Place]] = {}
    parent = _parent(statement, module) if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        whole = f"{parent}.{alias.name}" if parent else alias.name
        found = [(whole, WHOLE)] if _is_covered(whole, module) else []
        if parent and _is_covered(parent, module) and (file_of(whole) is None or alias.name in _own_names(parent)):
            found.append((parent, alias.name))
        name = alias.asname or (alias.name if parent else alias.name.split(".")[0])
        if found and name != whole and not (parent or alias.asname or _is_of(PROJECT, whole)):
            found += [(package, WHOLE) for package, _ in _run_with(whole)]  # `import a.b` binds a
        if found:
            places.setdefault(name, []).extend(found)
    return places


def _star_parents(module: str) -> list[str]:
    """The covered modules of which a module imports all names."""
    nodes = [node for statement in _definitions(module).get(STAR, []) for node in _outside_functions(statement)]
    return [place[0] for node in nodes if isinstance(node, IMPORTS) for place in _imported(node, module).get(STAR, [])]


@cache
def _own_names(module: str) -> set[str]:
    """The names that a module's top level binds, wherever from."""
    names = set()
    for statement in _statements(module):
        names.update(() if isinstance(statement, IMPORTS) else _bound(statement))
        for node in _outside_functions(statement):
            if isinstance(node, IMPORTS):
                names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return names


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
