"""docs/operators.md, and the operator of README.md, against the code that they point to."""

import re

import pytest
import torch
from msgspec import to_builtins
from transformers import BertConfig

from documented import custom_files
from model.models import dense, trained
from symbert.cli import main
from symbert.model.anatomy import describe_attention
from symbert.model.bert import attention_of
from symbert.model.hf import fold
from symbert.operators import OPERATORS, Operator


@pytest.fixture(scope="module")
def page(request):
    return (request.config.rootpath / "docs/operators.md").read_text(encoding="utf-8")


def test_the_printed_parameters_are_those_of_the_module(page):
    for name in OPERATORS:
        row = next(line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert row[3] == OPERATORS[name].counted_as(OPERATORS).parameters
        module = attention_of(BertConfig(hidden_size=24, num_attention_heads=3, attention=name))
        assert OPERATORS[name].count(24, 3, OPERATORS) == sum(parameter.numel() for parameter in module.parameters())


def test_every_link_points_at_the_line_that_it_quotes(page, root):
    links = re.findall(r"\[`([^`]+)`\]\(\.\./(\S+?)#L(\d+)\)", page)
    assert len(links) == 2 * len(OPERATORS)
    for quoted, path, number in links:
        line = (root / path).read_text(encoding="utf-8").splitlines()[int(number) - 1].strip()
        assert line == quoted or line.startswith(f"class {quoted}("), (quoted, number, line)


def test_the_example_of_a_new_operator_works_and_folds(page, monkeypatch, tmp_path):
    example = re.search(r"```python\n(.*?)```", page, re.S)[1]
    (tmp_path / "my_operators.py").write_text(example, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = trained(Operator("biased", "my_operators:Biased"))
    ids = torch.arange(12)[None]
    torch.testing.assert_close(fold(model)(ids).logits, dense(model, ids), rtol=0, atol=1e-5)


def test_the_example_of_a_forward_of_its_own_passes_every_check(root, monkeypatch, tmp_path, capsys):
    (tmp_path / "sigmoid.py").write_text(custom_files(root, "docs/operators.md")["sigmoid.py"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["check-operator", "sigmoid:Sigmoid"]) == 0
    sigmoid = Operator("sigmoid", "sigmoid:Sigmoid")
    model = trained(sigmoid)
    assert "padding changes none" not in capsys.readouterr().out and sigmoid.formula == "σ(Q(x) K(y)ᵀ)"
    assert len(describe_attention(model, torch.arange(12)[None])["attention_entropy"]) == 2


def test_the_operator_of_readme_has_the_logits_of_its_formula(root, monkeypatch, tmp_path):
    """tanh Q(x) tanh K(y)ᵀ in float64, written out."""
    (tmp_path / "bounded.py").write_text(custom_files(root)["bounded.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    bounded = Operator("bounded", "bounded:Bounded")
    assert bounded.formula == "tanh Q(x) tanh K(y)ᵀ"
    config = BertConfig(hidden_size=24, num_attention_heads=3, attention="bounded", operator=to_builtins(bounded))
    module = attention_of(config).double()
    hidden = torch.randn(2, 5, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    query, key, _ = module.query_key_value(hidden)
    q, k = (
        torch.tanh(hidden @ linear.weight.T + linear.bias).view(2, 5, 3, 8).transpose(1, 2)
        for linear in (module.query, module.key)
    )
    torch.testing.assert_close(query @ key.mT, q @ k.mT, rtol=0, atol=1e-12)
