"""Operators by name: the built-in ones, those of the user's own, and what their classes say of them."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from msgspec import to_builtins

from symbert import operators, syntax
from symbert.errors import ConfigError
from symbert.operators import OPERATORS, Operator, evaluate, operator_of, operators_of

MODULE = '''
from symbert.model.attention import OriginalAttention
from symbert.operators import Description


class LowRank(OriginalAttention):
    """(Q(x) R) (K(y) R)ᵀ, with f(x, y) of low rank: an example."""

    description = Description(parameters="3(h² + h) + rank h", color="#123456")

    def __init__(self, config, rank):
        super().__init__(config)


class Bare(OriginalAttention):
    pass


Other = LowRank


class Computed(OriginalAttention):
    description = Description(parameters="3" + "h²")
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An operator of a class in a module outside of this project, by its definition."""
    folder = tmp_path / "outside_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .operators import LowRank")
    (folder / "operators.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    return lambda name, definition: operators_of({name: definition})[name]


def test_a_formula_is_computed_as_it_is_read_and_what_is_none_is_refused():
    values = {
        "2h rank + 3(h + 1)n": 2 * 64 * 8 + 3 * 65 * 2,
        "(h + 1)(h − 1)": 4095,
        "h³/n·2": 64**3,
        "h²/n²": 1024,
        "1/49·49h": 64,
    }
    assert {formula: evaluate(formula, {"h": 64, "n": 2, "rank": 8}) for formula in values} == values
    for formula in ("2(h", "2d", "print(h)", "h/0", "h.real", "0.1h", "h//3", "h%3", "'64'"):
        with pytest.raises(ConfigError, match="formula of parameters"):
            evaluate(formula, {"h": 64, "n": 2})


def test_an_operator_of_the_users_own_says_of_itself_what_the_built_in_ones_say(own):
    """Other arguments are another operator."""
    path = "outside_package.operators:LowRank"
    operator = own("low-rank", {"class": path, "rank": 8})
    assert operator.formula == "(Q(x) R) (K(y) R)ᵀ"
    assert operator.count(64, 2, OPERATORS) == 3 * (64 * 64 + 64) + 8 * 64
    assert (operator.description.color, operator.description.marker) == ("#123456", "")
    assert own("bare", {"class": "outside_package.operators:Bare"}).formula is None
    assert own("low-rank", {"class": path, "rank": 9}) != operator


FLAT = """
from symbert.model.attention import SymmetricAttention
{imports}


class Flat(SymmetricAttention):
    \"\"\"Q(x) Q(y)ᵀ: flat.\"\"\"

    def query_key_value(self, hidden):
        {within}
        return super().query_key_value({used})


{below}
"""


@pytest.fixture
def code_of_flat(tmp_path, monkeypatch):
    """The code of an operator in `flat.py`, which lies in a folder beside other modules; read from the files anew."""
    monkeypatch.syspath_prepend(tmp_path)

    def code(
        files: dict[str, str], imports: str = "", within: str = "pass", used: str = "hidden", below: str = ""
    ) -> str:
        flat = FLAT.format(imports=imports, within=within, used=used, below=below)
        for name, text in {"flat.py": flat, **files}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        forget()
        return operators_of({"flat": {"class": "flat:Flat"}})["flat"].code

    yield code
    forget()


def forget() -> None:
    """As in a process that has read no module yet."""
    for cached in (syntax.file_of, syntax._statements, syntax._definitions):
        cached.cache_clear()


TIMES = "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return 2 * x\n\n\ndef other():\n    pass\n"


FORMS = [
    {"imports": "from nearby import f", "used": "f(hidden)"},
    {"imports": "from nearby import *", "used": "f(hidden)"},
    {"imports": "import nearby", "used": "nearby.f(hidden)"},
    {"imports": "try:\n    from nearby import f\nexcept ImportError:\n    f = abs", "used": "f(hidden)"},
    {"imports": "if 1 + 1 == 2:\n    from nearby import f as h", "used": "h(hidden)"},
    {"within": "from nearby import f", "used": "f(hidden)"},
    {"within": "import nearby as near", "used": "near.f(hidden)"},
    {"imports": "import nearby\nTABLE = {}", "used": "TABLE['f'](hidden)", "below": "TABLE['f'] = nearby.f"},
    {"imports": "import nearby", "below": "Flat.split_heads = nearby.f"},
    {"imports": "import nearby", "below": "setattr(Flat, 'split_heads', nearby.f)"},
    {"imports": "import nearby\nTABLE = {}", "used": "TABLE['f'](hidden)", "below": "TABLE.update(f=nearby.f)"},
    {"imports": "import nearby\nfrom torch import nn", "below": "for f in [nearby.f]:\n    nn.Linear.f = f"},
    {"imports": "import nearby\nfrom torch import nn", "below": "@nn.Module.register\ndef f():\n    nearby.f(1)"},
    {"imports": "from package.sub import f", "used": "f(hidden)"},
    {"imports": "import package.sub", "used": "package.sub.f(hidden)"},
    {"imports": "import package.other", "used": "package.sub.f(hidden)"},
    {"imports": "from package import sub", "used": "sub.f(hidden)"},
    {"imports": "import patches"},
]


def test_every_local_module_that_an_operator_reaches_is_its_code(code_of_flat):
    """A module beside the operator's file was not, nor one in `try`, `if` or a function, nor assignments of a module:
    checkpoints of earlier code were taken."""
    files = {
        "package/__init__.py": "from . import sub",
        "package/other.py": "",
        "package/sub.py": "from nearby import f",
        "patches.py": "import nearby\nfrom torch import nn\n\nnn.Linear.f = nearby.f\n",
    }
    edited = TIMES.replace("2 * x", "3 * x")
    said = TIMES.replace("def f(x):", 'def f(x):\n    """Text."""').replace("return 2", "# twice\n    return 2")
    for words in FORMS:
        before, after, same = (code_of_flat({**files, "nearby.py": text}, **words) for text in (TIMES, edited, said))
        assert after != before == same, words


def test_a_module_of_the_users_own_counts_whole_so_two_operators_in_one_file_are_trained_together(code_of_flat):
    words = {"imports": "from nearby import f", "used": "f(hidden)"}
    before = code_of_flat({"nearby.py": TIMES}, **words)
    assert code_of_flat({"nearby.py": TIMES.replace("pass", "return 1")}, **words) != before
    assert code_of_flat({"nearby.py": TIMES}, **words, below="class Second(Flat):\n    scale = 1") != before


UNFOLLOWED = {
    "import_module('nearby')": {"within": "import importlib\n        importlib.import_module('nearby')"},
    "open('w.txt')": {"within": "weights = open('w.txt').read()"},
    "np.genfromtxt('w.csv')": {"within": "import numpy as np\n        np.genfromtxt('w.csv')"},
    "pd.read_parquet('w')": {"within": "import pandas as pd\n        pd.read_parquet('w')"},
    "os.environ": {"within": "import os\n        scale = float(os.environ['SCALE'])"},
    "getenv('SCALE')": {"within": "from os import getenv\n        getenv('SCALE')"},
    "nearby.py, line 4: np.load('w.npy')": {"imports": "from nearby import f", "used": "f(hidden)"},
    "ConfigParser().read('w.ini')": {
        "within": "from configparser import ConfigParser\n        ConfigParser().read('w.ini')"
    },
    "run(['nproc'])": {"within": "from subprocess import run\n        run(['nproc'])"},
    "sp.run(['nproc'])": {"within": "import subprocess as sp\n        sp.run(['nproc'])"},
    "platform.node()": {"within": "import platform\n        platform.node()"},
    "time.time()": {"within": "import time\n        time.time()"},
    "torch.get_num_threads()": {"within": "import torch\n        torch.get_num_threads()"},
    "torch.cuda.is_available()": {"within": "import torch\n        torch.cuda.is_available()"},
}
FOLLOWED = [
    {"imports": "import math, functools, os.path", "used": "hidden * math.sqrt(2)"},
    {"imports": "import os", "within": "os.path.join('a', 'b')"},
    {"imports": "from dataclasses import dataclass", "within": "hidden.relu()"},
]


def test_code_that_cannot_be_followed_is_said_in_a_line(code_of_flat):
    nearby = "import numpy as np\n\ndef f(x):\n    return np.load('w.npy') * x\n"
    flat = {"flat": Operator("flat", "flat:Flat")}
    for said, words in UNFOLLOWED.items():
        code_of_flat({"nearby.py": nearby}, **words)
        (line,) = operators.unfollowed_code(flat)
        assert line.startswith("attention 'flat': ") and said in line
    of_text = operators.unfollowed_code(flat, ["nearby:f"])[1]
    assert of_text.startswith("text 'nearby:f': nearby.py, line 4: np.load('w.npy')")
    for words in ({"imports": "from nearby import f", "used": "f(hidden)"}, *FOLLOWED):
        code_of_flat({"nearby.py": TIMES}, **words)
        assert operators.unfollowed_code(flat) == []


def test_a_local_module_without_source_is_said_in_a_line(code_of_flat, tmp_path):
    """An edit of compiled code trains nothing, whatever it computes."""
    (tmp_path / "nearby").with_suffix(EXTENSION_SUFFIXES[0]).touch()
    code_of_flat({}, imports="import nearby", used="nearby.f(hidden)")
    (line,) = operators.unfollowed_code({"flat": Operator("flat", "flat:Flat")})
    assert "flat.py, line" in line and "import nearby" in line


def test_the_versions_of_classes_of_this_project_count_in_an_operator_that_uses_them(code_of_flat, monkeypatch):
    """Another formula of `symmetric` retrained nothing that inherits from it, or that names it in a module beside."""
    raised = {"SymmetricAttention": 2, "SharedAttention": 3}
    monkeypatch.setattr(operators, "_version_of", lambda name: raised.get(name, 1))
    code_of_flat({})
    assert operators.versions_of("flat:Flat") == {"SymmetricAttention": 2}
    module = "symbert.model.attention"
    for statement in (f"from {module} import PairwiseAttention, SharedAttention", f"import {module}"):
        code_of_flat({"nearby.py": statement}, imports="import nearby")
        assert operators.versions_of("flat:Flat") == raised


NEEDING = "attention 'own': outside_package.operators:LowRank"


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"class": "outside_package.operators:LowRnak", "rank": 8}, "no class LowRnak in it; did you mean 'LowRank'"),
        ({"class": "outside_package:LowRank", "rank": 8}, "name the module of the class"),
        ({"class": "outside_package/operators.py:LowRank"}, "no import path; write outside_package.operators:LowRank"),
        ({"class": "operators.py:LowRank"}, "no import path; write operators:LowRank"),
        ({"class": "outside_package.operators.LowRank"}, "no import path; write outside_package.operators:LowRank"),
        ({"class": "outside_package.operators: LowRank"}, "no import path; write outside_package.operators:LowRank"),
        ({"class": "OriginalAttention"}, "no import path; write my_module:Class; did you mean 'original'"),
        ({"class": "outside_package.operators:Other", "rank": 8}, "no class Other in it; .*LowRank"),
        ({"class": "outside_package.operators:LowRank"}, f"{NEEDING} needs rank; write .*rank: "),
        ({"class": "outside_package.operators:Bare", "rank": 8}, "takes no argument 'rank'"),
        ({"class": "original", "rank": 8}, "takes no argument 'rank'"),
        ({"class": "outside_package.operators:LowRank", "rnak": 8, "rank": 8}, f"{NEEDING} takes no argument 'rnak'"),
    ],
)
def test_a_mistake_in_a_class_or_its_arguments_is_found_before_a_job(own, definition, said):
    """A missing argument was found by the job that trained."""
    with pytest.raises(ConfigError, match=said):
        own("own", definition)


def test_a_description_that_the_report_cannot_read_is_found_before_training(code_of_flat):
    for said, words in {
        "itself": 'description = Description(control_of="flat")',
        "'wavy' is no line": 'description: Description = Description(line="wavy")',
        "not all texts": "description = Description(parameters=3)",
        "'symetric' is unknown": 'description = Description(control_of="symetric")',
        "formula of parameters": 'description = Description(parameters="3(h + r)")',
    }.items():
        flat = (
            f"from symbert.model.attention import SymmetricAttention\n\nclass Flat(SymmetricAttention):\n    {words}\n"
        )
        with pytest.raises(ConfigError, match=said):
            code_of_flat({"flat.py": flat})


def test_a_class_that_is_not_there_or_another_one_of_the_same_name_is_refused(own):
    definition = {"class": "outside_package.operators:LowRank", "rank": 8}
    for path in ("nowhere_at_all.operators:Gated", "outside_package.operators:Gated", "outside_package.operators"):
        with pytest.raises(ConfigError, match=path.replace(":", ".*").partition(".*")[0]):
            own("gated", {"class": path})
    for name, words in (("original", []), ("bare", ["outside_package.operators:Bare"])):
        with pytest.raises(ConfigError, match=f"'{name}' is .* already"):
            operators_of({name: {**definition, "class": "outside_package.operators:LowRank"}}, words)
    with pytest.raises(ConfigError, match=r"operators:Computed: 'description', line \d+"):
        own("computed", {"class": "outside_package.operators:Computed"})


def test_a_class_among_the_files_of_a_checkpoint_is_not_run(own, tmp_path):
    operator = own("low-rank", {"class": "outside_package.operators:LowRank", "rank": 8})
    config = {"attention": "low-rank", "operator": to_builtins(operator)}
    assert operator_of(config | {"_name_or_path": str(tmp_path / "elsewhere")}) == operator
    with pytest.raises(ConfigError, match="lies in the checkpoint that names it"):
        operator_of(config | {"_name_or_path": str(tmp_path)})


def test_a_relative_import_outside_of_a_package_is_one_line_and_no_bug_of_ours(own, tmp_path):
    (tmp_path / "alone.py").write_text("from .nearby import width\n\n\nclass Flat:\n    pass\n")
    with pytest.raises(ConfigError, match=r"alone\.py:1: imports \.nearby, .* whole name"):
        assert own("alone", {"class": "alone:Flat"}).code


def test_a_job_looks_for_an_operator_in_the_folder_where_it_runs_as_the_start_does(tmp_path, monkeypatch):
    """No training found an operator beside results/, though the start had."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_results.py").write_text("class Lonely:\n    pass\n")
    of_run = Operator("lonely", "beside_results:Lonely", code="another")
    with pytest.raises(ConfigError, match="code of 'lonely' is [0-9a-f]{16} today, and was another"):
        of_run.refuse_edited(Path("run.json"))
