"""`symbert check-operator`: right operators pass, and each wrong one fails its check with the reason."""

import re
import sys
from contextlib import nullcontext

import pytest
import torch

from model import right_operators as right
from model import wrong_operators as wrong
from model.models import MIXING
from symbert import cli
from symbert.model import check
from symbert.operators import OPERATORS, Operator
from symbert.sizes import SIZES
from symbert.syntax import file_of


@pytest.fixture
def outcome_of():
    """What one check of an operator says; of a failure the reason."""

    def run(operator: type, name: str) -> str:
        own = Operator("own", f"{operator.__module__}:{operator.__name__}")
        return check.CHECKS[name](own, check.model_for(own))

    return run


def test_operators_of_this_project_pass():
    for name in ("original", "pairwise", "shared"):
        model = check.model_for(OPERATORS[name])
        for checked in check.CHECKS.values():
            assert checked(OPERATORS[name], model)


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        (right.SoftmaxIn32Bits, ["gradients"]),  # differences in steps of a millionth were rounding
        (right.Rectified, ["gradients"]),  # a step crossed a kink
        (right.Averaging, ["tokens", "causal", "gradients"]),  # rows were computed after other steps
        (right.LowRank, ["parameters"]),  # `rank` was "not defined" where it was not given
    ],
)
def test_a_right_operator_is_not_refused(outcome_of, operator, names):
    for name in names:
        assert outcome_of(operator, name)


def test_a_check_compiles_nothing(monkeypatch):
    """A method with `@torch.compile` was compiled for a minute before each training."""
    stances = []
    monkeypatch.setitem(sys.modules, "torch._dynamo", sys)
    monkeypatch.setattr(torch.compiler, "set_stance", lambda stance: stances.append(stance) or nullcontext())
    original = OPERATORS["original"]
    assert check.outcome_of(lambda *_: "fine", original, check.model_for(original)) == ("ok", "fine")
    assert stances == ["force_eager"]


def test_an_operator_that_mixes_tokens_passes_as_one_that_is_given_no_padding(outcome_of):
    for operator in MIXING:
        assert "one length" in outcome_of(operator, "tokens")
        assert outcome_of(operator, "gradients")


@pytest.mark.parametrize(
    ("operator", "name", "reason"),
    [
        (wrong.Unfilled, "init", "shift is never filled; fill it in `initialize`"),
        (wrong.Detached, "gradients", r"hidden states: .* along a direction, but outputs differ by"),
        (wrong.Unused, "gradients", "no gradient reaches spare.weight, spare.bias"),
        (wrong.Normed, "init", "layer.0.query.*original0 starts with numbers of __init__, alike for all seeds"),
        (wrong.Orthogonal, "init", "layer.0.query.weight starts with numbers of __init__, alike for all seeds"),
        (wrong.Drawn, "init", "layer.0.scale starts with numbers of __init__, alike for all seeds"),
        (wrong.Unmasked, "tokens", "other outputs beside other rows or padding"),
        (wrong.Centred, "tokens", "other outputs beside other rows or padding"),
        (wrong.Normalised, "tokens", "other outputs beside other rows or padding"),
        (wrong.Divided, "tokens", "other outputs beside other rows or padding"),
        (wrong.Turned, "tokens", "other outputs beside other rows or padding"),
        (wrong.Ahead, "causal", "in a decoder a token depends on later ones"),
        (wrong.AlwaysDropping, "dropout", "attention_probs_dropout_prob drops weights in evaluation"),
        (wrong.Miscounted, "parameters", r"8,320 in a layer, but 3\(h² \+ h\) is 12,480; correct"),
        (wrong.Overflowing, "bf16", "the (loss|gradient of .*) is not finite at the start"),
    ],
)
def test_a_wrong_operator_fails_its_check_with_the_reason(outcome_of, operator, name, reason):
    with pytest.raises(check.FailedCheckError, match=reason):
        outcome_of(operator, name)


def test_an_operator_without_weights_to_drop_is_told_and_passes(outcome_of):
    assert "changes nothing in training" in outcome_of(wrong.Sharp, "dropout")


def test_what_a_training_goes_on_with_is_said(outcome_of):
    """A start that is alike for all seeds, state that depends on micro-batches, an operator that no BERT equals."""
    assert not isinstance(outcome_of(wrong.Scaled, "init"), check.Noted)
    for operator, name, said in (
        (wrong.Ramped, "init", "layer.0.scale starts with the same numbers for every seed"),
        (wrong.KeptCount, "state", "layer.0.calls changes with every training pass, .*micro_batch_size"),
        (wrong.OneKey, "fold", "no equal BERT"),
    ):
        line = outcome_of(operator, name)
        assert isinstance(line, check.Noted) and re.search(said, line)


def test_rounding_in_16_bits_is_no_mixing_of_rows(outcome_of):
    assert "each row is as if alone" in outcome_of(wrong.Half, "tokens")


def test_the_mask_of_padding_is_not_the_mask_of_a_decoder(outcome_of):
    """The perplexity of a decoder that saw the token to be predicted stood beside the others'."""
    assert "each row is as if alone" in outcome_of(wrong.Ahead, "tokens")
    assert "no token depends on later ones" in outcome_of(wrong.Scaled, "causal")


def test_a_check_that_does_not_apply_is_neither_ok_nor_told_before_a_training(capsys):
    """ "ok … a decoder refuses it": the check of decoders had not been made."""
    mixing = Operator("mixing", f"{MIXING[0].__module__}:{MIXING[0].__name__}")
    model = check.model_for(mixing)
    assert check.outcome_of(check.check_causal, mixing, model)[0] == "skip"
    check.refuse_untrue(mixing, SIZES["tiny"], torch.device("cpu"))
    assert "decoder" not in capsys.readouterr().err


def test_the_command_prints_a_line_per_check_and_ends_with_65_when_one_fails(monkeypatch, capsys):
    monkeypatch.setattr(check, "CHECKS", {name: check.CHECKS[name] for name in ("init", "parameters")})
    assert cli.main(["check-operator", "model.wrong_operators:Miscounted"]) == 65
    said = capsys.readouterr()
    assert [line.split()[:2] for line in said.out.splitlines()] == [["ok", "init"], ["FAIL", "parameters"]]
    assert cli.main(["check-operator", "model.wrong_operators:Demanding", "--arguments", '{"rank": 8}']) == 0
    assert cli.main(["check-operator", "qk-norm", "--arguments", '{"gain": 5, "learned": false}']) == 0
    assert "12,480 in a layer, as 3(h² + h) + learned n says" in capsys.readouterr().out


MISTAKES = [
    (["symetric"], "'symmetric'"),
    (["model.wrong_operators:Incomplete"], "Incomplete"),
    (["misspelt:Gated"], "misspelt.py, line 3"),
    (["model.wrong_operators:Demanding", "--arguments", '{"rank": 7}'], "{'rank': 7}"),
    (["model.wrong_operators:Demanding", "--arguments", "{rank: 7}"], "--arguments"),
]


def test_a_mistake_is_one_line(monkeypatch, tmp_path, capsys):
    """Where the user's own code fails, with its file and line."""
    monkeypatch.syspath_prepend(tmp_path)
    misspelt = "from symbert.model.attention import SymmetricAttention\n\nfrom torch import nothing\n\n\n"
    (tmp_path / "misspelt.py").write_text(f"{misspelt}class Gated(SymmetricAttention):\n    pass\n")
    file_of.cache_clear()
    for words, named in MISTAKES:
        assert cli.main(["check-operator", *words]) == 64
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line
