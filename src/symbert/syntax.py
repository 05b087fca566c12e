"""What stands in a module that is not imported, because importing torch takes seconds: read from its source."""

import ast
import importlib.util
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from symbert.declared import suggestion
from symbert.errors import ConfigError
from symbert.files import hash_of

PROJECT = __package__
LIBRARIES = ("torch", "transformers", "numpy")  # no operator's code, also where they are installed from a local folder
WHOLE = "*"  # in the place of a name: all that a module defines
# The modules of Python that compute with what they are given; what others return is no one's code.
PURE = re.compile(
    "__future__|abc|array|bisect|builtins|cmath|collections|contextlib|copy|csv|dataclasses|decimal|enum|fractions|"
    "functools|heapq|inspect|itertools|json|logging|math|numbers|operator|pathlib|pprint|random|re|statistics|string|"
    "struct|textwrap|types|typing|warnings|weakref"
)
READING = re.compile(  # functions that read a file, a machine or a program's output, or import or run its content
    "import_module|__import__|spec_from_file_location|run_path|run_module|exec|CDLL|LoadLibrary|"
    "(fd|safe_|url)?open|[Pp]open|open_memmap|memmap|File|ZipFile|(read|scan)_[a-z]+|load|safe_load|load(txt|mat|arff)|"
    "load_(file|npz|library|inline|dataset|from_disk)|genfromtxt|from_?file|fromregex|getlines?|get_data|urlretrieve|"
    "from_pretrained|hf_hub_download|snapshot_download|getenv|check_output|getoutput|"
    "read|readlines?|exists|is_file|iterdir|get_num_(interop_)?threads|device_count|is_available|get_device_[a-z]+"
)
SURROUNDINGS = "environ", "environb", "argv", "stdin"  # names of os and sys that say how the process was started
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
Definition = TypeVar("Definition", ast.ClassDef, ast.FunctionDef)
Place = tuple[str, str]  # a module, and a name that it defines at its top level


def code_of(module: str) -> str:
    """16 hexadecimal digits that stand for what a module of the user's own computes: its syntax, that of every module
    of its package, and of every local module that it imports, also in `try`, `if` or a function.

    Modules count whole; blanks, comments, docstrings and `description` never do. Nothing else that is installed counts.
    """
    return hash_of([[name, _syntax(_statements(name))] for name in _reached(module)])


def named_by(module: str, other: str) -> set[str]:
    """The names that a module of the user's own, and those that belong to its code, import from a module `other` of
    this project; WHOLE where they import the module itself."""
    found = set()
    for name in _reached(module):
        for node in _nodes(name):
            if isinstance(node, ast.Import):
                found |= {WHOLE for alias in node.names if alias.name == other}
            elif isinstance(node, ast.ImportFrom) and (parent := _parent(node, name)) == other:
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {WHOLE for alias in node.names if f"{parent}.{alias.name}" == other}
    return found


def unfollowed(module: str) -> list[str]:
    """Where a module of the user's own leaves what `code_of` covers, as `file, line: code`: it calls
    `importlib` or another module of Python that is not PURE, imports a local module without source, or reads a file or
    how the process was started."""
    found = set()
    for owner in _reached(module):
        impure = _impure(owner)
        nodes = [node for node in _nodes(owner) if _leaves(node, impure)]
        within = {part for node in nodes if isinstance(node, ast.Call) for part in ast.walk(node.func)}
        found |= {(file_of(owner).name, node.lineno, ast.unparse(node)) for node in nodes if node not in within}
    return [f"{file}, line {line}: {code}" for file, line, code in sorted(found)]


def keys_of(module: str, table: str) -> tuple[str, ...]:
    """The keys of a dict that a module writes out at its top level."""
    (statement,) = _definitions(module)[table]
    return tuple(ast.literal_eval(key) for key in statement.value.keys)


def classes_of(module: str, base: str) -> list[str]:
    """The classes of a module that inherit from its class `base`, in their order."""
    heirs = [base]
    for statement in _statements(module):
        if isinstance(statement, ast.ClassDef) and any(ast.unparse(parent) in heirs for parent in statement.bases):
            heirs.append(statement.name)
    return heirs[1:]


def bases_of(module: str, name: str) -> list[str]:
    """A class of a module and its bases there; none where that is no class."""
    found = [node for node in _definitions(module).get(name, []) if isinstance(node, ast.ClassDef)]
    return [name, *(each for base in found[0].bases for each in bases_of(module, ast.unparse(base)))] if found else []


def definition_of(module: str, name: str, cls: type[Definition] = ast.ClassDef) -> Definition:
    """The definition of a class or function at the top level of a module. ConfigError where there is none."""
    for node in chain.from_iterable(map(ast.walk, _definitions(module).get(name, []))):
        if isinstance(node, cls) and node.name == name:
            return node
    word, bound = "class" if cls is ast.ClassDef else "function", _definitions(module)
    there = [each for each, statements in bound.items() if any(isinstance(node, cls) for node in statements)]
    is_imported = any(isinstance(node, IMPORTS) for node in chain.from_iterable(map(ast.walk, bound.get(name, []))))
    remedy = (
        f"; name the module of the {word} in {module}:{name}" if is_imported or not there else suggestion(name, there)
    )
    raise ConfigError(f"{file_of(module)}: no {word} {name} in it{remedy}")


def constructor_of(module: str, name: str) -> ast.arguments | None:
    """The arguments of the `__init__` of a class, its own or inherited; None where the source does not say."""
    node = definition_of(module, name)
    own = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    if node.decorator_list or node.keywords or own:
        return own[-1].args if own and not (node.decorator_list or node.keywords) else None
    for base in node.bases:
        place = _place_of(base, module)
        found = place and constructor_of(*place)
        if place is None or found:
            return found
    return None


def defaults_of(taken: ast.arguments) -> dict[str, ast.expr]:
    """The arguments that may be left out, each with what stands for it."""
    names = [each.arg for each in (*taken.posonlyargs, *taken.args)]
    pairs = [*zip(names[len(names) - len(taken.defaults) :], taken.defaults, strict=True)]
    pairs += zip((each.arg for each in taken.kwonlyargs), taken.kw_defaults, strict=True)
    return {name: default for name, default in pairs if default is not None}


def _place_of(base: ast.expr, module: str) -> Place | None:
    """Where the class is defined that a module calls so; None where its source is not followed."""
    for statement in _definitions(module).get(getattr(base, "id", ""), []):
        if isinstance(statement, ast.ClassDef):
            return module, statement.name
        if isinstance(statement, ast.ImportFrom):
            parent = _parent(statement, module)
            names = {alias.asname or alias.name: alias.name for alias in statement.names}
            return (parent, names[base.id]) if _is_read(parent, module) and base.id in names else None
    return None


def sentence_of(module: str, name: str) -> str:
    """The first sentence of a function's docstring."""
    (function,) = (node for node in _statements(module) if isinstance(node, ast.FunctionDef) and node.name == name)
    words = " ".join(ast.get_docstring(function).split())
    return re.split(r"(?<=[^.]\.) ", words, maxsplit=1)[0]


def _reached(module: str) -> list[str]:
    """The modules of the user's own that run with a module, itself among them."""
    reached, waiting = set(), [module]
    while waiting:
        module = waiting.pop()
        if module not in reached and module.split(".")[0] != PROJECT:
            reached.add(module)
            waiting += chain.from_iterable(
                _imported(node, module) for node in _nodes(module) if isinstance(node, IMPORTS)
            )
            if file_of(package := module.rpartition(".")[0]) is not None:
                waiting.append(package)  # which runs before a module that lies in it
    return sorted(reached)


def _imported(statement: ast.Import | ast.ImportFrom, module: str) -> Iterator[str]:
    """The covered modules that an import reads."""
    parent = _parent(statement, module) if isinstance(statement, ast.ImportFrom) else ""
    for alias in statement.names:
        whole = f"{parent}.{alias.name}" if parent else alias.name
        if _is_read(name := parent if file_of(whole) is None else whole, module):
            yield name


def _parent(statement: ast.ImportFrom, module: str) -> str:
    """The module that names are imported from, also where dots say how far it is from the one that imports."""
    name, file = "." * statement.level + (statement.module or ""), file_of(module)
    try:
        return importlib.util.resolve_name(name, module if file.name == "__init__.py" else module.rpartition(".")[0])
    except ImportError:
        raise ConfigError(
            f"{file}:{statement.lineno}: imports {name}, which is outside of its package; import it by its whole name"
        ) from None


def _impure(module: str) -> set[str]:
    """The names that a module has from imports of Python's modules that are not PURE."""
    names = set()
    for node in _nodes(module):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names if _is_impure(alias.name)}
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_impure(node.module):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _is_impure(module: str) -> bool:
    top = module.split(".")[0]
    return top in sys.stdlib_module_names and not PURE.fullmatch(top) and module != "os.path"


def _leaves(node: ast.AST, impure: set[str]) -> bool:
    """Whether code goes on where its syntax does not lead; `impure` are names from modules of Python."""
    if isinstance(node, ast.Import):
        return any(_is_without_source(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return not node.level and _is_without_source(node.module)
    if isinstance(node, ast.Call):
        words = re.split(r"\W+", ast.unparse(node.func))
        return READING.fullmatch(_last_word(node.func)) is not None or (words[0] in impure and words[1:2] != ["path"])
    return _last_word(node) in SURROUNDINGS


def _last_word(node: ast.AST) -> str:
    """The name that a name or an attribute ends in."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _is_without_source(module: str) -> bool:
    """Whether a local module is compiled, or is found by the running code alone."""
    if _spec_of(module.split(".")[0]) is None:
        return True
    spec = _spec_of(module)
    return spec is not None and spec.has_location and file_of(module) is None and is_local(Path(spec.origin))


def _is_read(module: str, by: str) -> bool:
    """Whether the source of a module is read for another one: of its package, of this project, or of the user."""
    top = module.split(".")[0]
    if top in LIBRARIES or (file := file_of(module)) is None:
        return False
    return top in (PROJECT, by.split(".")[0]) or is_local(file)


def is_local(file: Path) -> bool:
    """Whether a file is the user's own: none of Python's, of this project, or of an installed package."""
    installed = {"site-packages", "dist-packages"} & {*file.parts}
    others = Path(sysconfig.get_path("stdlib")), Path(__file__).parent
    return not installed and not any(file.is_relative_to(folder) for folder in others)


def look_in_this_folder() -> None:
    """Have modules of the user's own found in this folder, after all that is installed."""
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)


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


@cache
def _statements(module: str) -> list[ast.stmt]:
    """The top level of a module. ConfigError for one that is not there, or that Python cannot read."""
    file = file_of(module)
    if file is None:
        raise ConfigError(f"no module {module}; correct the path, or put the module into this folder")
    try:
        return ast.parse(file.read_text(encoding="utf-8"), str(file)).body
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not Python ({error}); correct it") from None


def _nodes(module: str) -> Iterator[ast.AST]:
    """All that stands in a module."""
    return chain.from_iterable(map(ast.walk, _statements(module)))


@cache
def _definitions(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of a module's top level by the names that they bind."""
    statements: dict[str, list[ast.stmt]] = {}
    for statement in _statements(module):
        names: list[str] = []
        for node in [statement] if isinstance(statement, DEFINITIONS) else ast.walk(statement):
            if isinstance(node, DEFINITIONS):
                names.append(node.name)
            elif isinstance(node, IMPORTS):
                names += [alias.asname or alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
        for name in dict.fromkeys(names):
            statements.setdefault(name, []).append(statement)
    return statements


def _syntax(node: Any) -> Any:
    """A syntax tree as lists: without docstrings, places and `description`, and without empty fields, which differ
    between Pythons."""
    if isinstance(node, list):
        return [_syntax(item) for item in node if not _is_said(item)]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {
        name: _syntax(value) for name, value in ast.iter_fields(node) if value not in (None, []) and name != "ctx"
    }
    return [type(node).__name__, *((name, value) for name, value in fields.items() if value != [])]


def _is_said(node: Any) -> bool:
    """Whether a statement is a docstring, or what a class says of its operator for tables and figures."""
    match node:
        case (
            ast.Expr(ast.Constant(str()))
            | ast.Assign([ast.Name("description")])
            | ast.AnnAssign(ast.Name("description"))
        ):
            return True
    return False
