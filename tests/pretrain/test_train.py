"""One optimizer step: the same batch however it is cut, and refused before it can do harm."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from symbert.errors import ConfigError, DivergedError, MemoryExhaustedError
from symbert.pretrain.compute import Updater, World, pick_device
from symbert.pretrain.tasks import count_targets
from symbert.pretrain.train import Trainer


def weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_a_step_is_that_of_stock_bert_and_torchs_adamw(build):
    """The reference: Hugging Face's model with its dense head and labels, float64, torch's own parts."""
    trainer = build("original", warmup_steps=0, learning_rate=1e-3, gradient_clip=0.5)
    trainer.model.double()
    shared = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    stock = BertForMaskedLM(BertConfig(**{key: getattr(trainer.model.config, key) for key in shared}, **dropout))
    stock.double().load_state_dict(trainer.model.state_dict())
    decayed = [p for p in stock.parameters() if p.ndim > 1]
    groups = [{"params": decayed}, {"params": [p for p in stock.parameters() if p.ndim <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, eps=1e-12, weight_decay=0.01, fused=False)
    batch = trainer.task.training_batch(0)
    loss = stock(batch["input_ids"], labels=batch["targets"]).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(stock.parameters(), 0.5)
    optimizer.step()
    stepped = trainer.step(0)
    assert stepped.loss == pytest.approx(loss.item(), abs=1e-6)  # our loss is computed in float32 from the logits on
    assert stepped.gradient_norm == pytest.approx(norm.item(), rel=1e-5) and norm > 0.5
    assert stepped.learning_rate == 1e-3
    for name, parameter in stock.named_parameters():
        ours = trainer.model.get_parameter(name)
        assert (ours - parameter).abs().max() < 2e-5, name  # a step is at most 1e-3


@pytest.mark.parametrize("micro_batch_size", [1, 3])
def test_micro_batches_change_neither_loss_nor_step(build, micro_batch_size):
    whole, cut = build(), build(micro_batch_size=micro_batch_size)
    for step in range(3):
        one, other = whole.step(step), cut.step(step)
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)
    assert whole.evaluate() == pytest.approx(cut.evaluate(), rel=1e-4)


def without_hidden_tokens(trainer: Trainer) -> list[int]:
    """The first steps whose batch hides no token."""
    return [step for step in range(200) if not count_targets(trainer.task.training_batch(step))]


@pytest.mark.parametrize("changes", [{}, {"micro_batch_size": 1}, {"precision": "bf16"}])
def test_a_step_in_which_no_token_is_hidden_has_a_loss_and_a_gradient_of_zero(build, changes):
    """It divided by zero, and the run ended with the advice to lower the learning rate."""
    trainer = build("original", batch_size=2, mask_probability=0.05, warmup_steps=0, **changes)
    empty, before = without_hidden_tokens(trainer)[0], weights(trainer)
    result = trainer.step(empty)
    assert (result.loss, result.gradient_norm) == (0.0, 0.0)
    decayed = before * (1 - result.learning_rate * trainer.settings.weight_decay)
    matrices = torch.cat([torch.full((each.numel(),), each.ndim > 1) for each in trainer.model.parameters()])
    torch.testing.assert_close(weights(trainer), decayed.where(matrices, before), rtol=1e-6, atol=0)
    assert trainer.step(empty + 1).loss > 1


def test_a_sequence_without_hidden_tokens_changes_nothing_in_a_step_that_has_some(build):
    whole, cut = (build(batch_size=4, mask_probability=0.05, micro_batch_size=size) for size in (4, 1))
    counts = (cut.task.training_batch(0)["targets"] >= 0).sum(1)
    assert 0 in counts and counts.sum() > 0
    assert cut.step(0).loss == pytest.approx(whole.step(0).loss, rel=1e-5)


def test_validation_rows_of_which_no_token_is_hidden_are_refused_before_the_first_step(build):
    """Their masks are those of every run: the first evaluation divided by zero."""
    with pytest.raises(ConfigError, match=r"'pretrain.mask_probability' 0\.001 .* 8 validation rows of 16 tokens"):
        build(mask_probability=0.001)


def test_a_step_is_a_function_of_seed_and_number_whatever_was_drawn_before(build):
    """Its dropout, and its batch, which the step before has made ahead."""
    one, other = build(dropout=0.1), build(dropout=0.1)
    torch.rand(1000)
    first = one.step(3), one.step(4)
    torch.manual_seed(12345)
    again = [other.step(3)]
    assert (*again, other.step(4)) == first
    assert torch.equal(weights(one), weights(other))


def test_a_loss_or_gradient_that_is_not_finite_stops_before_the_weights_change(build, monkeypatch):
    trainer = build()
    before = weights(trainer)
    hook = trainer.model.bert.embeddings.LayerNorm.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(DivergedError, match="gradient norm (inf|nan)"):
        trainer.step(0)
    assert torch.equal(weights(trainer), before)
    hook.remove()
    trainer.model.cls.predictions.bias.data[7] = math.nan
    before = weights(trainer).nan_to_num(123.0)
    with pytest.raises(DivergedError, match=r"loss nan.*step 0; .*pretrain.learning_rate"):
        trainer.step(0)
    assert torch.equal(weights(trainer).nan_to_num(123.0), before)


def test_fp16_skips_a_step_that_overflows_and_goes_on_but_stops_where_it_never_finds_a_scale(build):
    """A gradient that is never finite used to skip every step to the end, and the run was published as done."""
    trainer = build()
    trainer.updater.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    before = weights(trainer)
    first = trainer.step(0)
    assert math.isfinite(first.loss) and not math.isfinite(first.gradient_norm)
    assert torch.equal(weights(trainer), before)
    assert any(math.isfinite(trainer.step(step).gradient_norm) for step in range(1, 127))
    assert not torch.equal(weights(trainer), before)
    before, scales, trainer.updater.scaler = weights(trainer), [], torch.amp.GradScaler("cpu", init_scale=8.0)
    trainer.model.bert.embeddings.LayerNorm.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(DivergedError):
        for step in range(10):
            scales.append(trainer.updater.scaler.get_scale())
            trainer.step(step)
    assert scales == [8.0, 4.0, 2.0, 1.0, 0.5] and torch.equal(weights(trainer), before)


def test_a_batch_of_fewer_sequences_than_processes_is_refused(build):
    with pytest.raises(ConfigError, match=r"'pretrain.batch_size' is 8, fewer than the 9 processes"):
        build(world=World(8, 9, pick_device()))


REFUSAL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def refuse_more_than(sequences: int, error: Exception, monkeypatch) -> None:
    """An allocator that has memory for so many sequences at a time: it refuses when gradients are already there."""
    backward, compute, sizes = Updater.backward, Trainer._loss_of, []

    def refusing(updater, loss):
        backward(updater, loss)
        if sizes[-1] > sequences:
            raise error

    monkeypatch.setattr(Trainer, "_loss_of", lambda *given: sizes.append(len(given[1]["input_ids"])) or compute(*given))
    monkeypatch.setattr(Updater, "backward", refusing)


def test_out_of_memory_halves_the_micro_batch_and_goes_on_as_with_the_smaller_one(build, monkeypatch, capsys):
    small = build(dropout=0.1, micro_batch_size=2)
    expected, validated = [small.step(step) for step in range(3)], small.evaluate()
    halving = build(dropout=0.1)
    refuse_more_than(2, REFUSAL, monkeypatch)
    steps = [halving.step(step) for step in range(3)]
    assert halving.micro_batch_size == 2 and steps == expected and halving.evaluate() == validated
    assert torch.equal(weights(halving), weights(small))
    assert [line.rpartition(" with ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "4 sequences at a time",
        "2 sequences at a time",
    ]


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (REFUSAL, MemoryExhaustedError, r"'pretrain.micro_batch_size'.*shard_parameters"),
        (RuntimeError("shapes do not match"), RuntimeError, "shapes"),
    ],
)
def test_where_one_sequence_is_too_much_the_keys_that_help_are_named_and_another_error_is_no_lack_of_memory(
    build, monkeypatch, error, kind, said
):
    trainer = build()
    refuse_more_than(0, error, monkeypatch)
    with pytest.raises(kind, match=said):
        trainer.step(0)
    assert trainer.micro_batch_size == (1 if error is REFUSAL else 8)


@pytest.mark.parametrize("attention", ["pairwise", "symmetric-others"])
def test_a_compiled_model_is_one_graph_and_computes_the_same(build, monkeypatch, attention):
    """`fullgraph` refuses any graph break; the number of graphs shows that batches of other masks compile none.

    An H100 took 0.76 of the speed without: transformers made a mask of ones whose last stride was 0, which no
    kernel of attention takes. Only an operator with a mask of its own may have one.
    """
    graphs, masks, compile_ = [], [], torch.compile

    def count(graph, inputs):
        graphs.append(graph)
        calls = [node for node in graph.graph.nodes if node.target is F.scaled_dot_product_attention]
        masks.extend(call.kwargs["attn_mask"] for call in calls)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda module, **options: compile_(module, backend=count, **options))
    torch._dynamo.reset()
    compiled, plain = build(attention, compile=True), build(attention)
    for step in range(4):
        assert compiled.step(step).loss == pytest.approx(plain.step(step).loss, rel=1e-5)
    assert len(graphs) == 1 and len(masks) == 2  # layers
    for mask in masks:
        assert mask is None if attention == "pairwise" else mask.meta["example_value"].stride(-1) == 1
    assert compiled.evaluate() == pytest.approx(plain.evaluate(), rel=1e-5)


@pytest.mark.campaign
def test_a_model_is_compiled_to_real_code(build):
    """With the compiler that users get, once; g++ is needed for kenlm anyway."""
    torch._dynamo.reset()
    compiled, plain = build(compile=True, dropout=0.0), build()
    for step in range(2):
        assert compiled.step(step).loss == pytest.approx(plain.step(step).loss, rel=1e-4)


def test_mixed_precision_keeps_weights_in_float32_and_comes_near(build):
    mixed, exact = build(precision="bf16"), build()
    for step in range(3):
        assert mixed.step(step).loss == pytest.approx(exact.step(step).loss, rel=2e-2)
    assert {parameter.dtype for parameter in mixed.model.parameters()} == {torch.float32}


def test_evaluation_is_the_mean_over_masked_tokens_of_all_rows(build):
    trainer = build(micro_batch_size=3)
    batch = trainer.task.inputs(trainer.task.validation_batch(np.arange(8)), False)
    trainer.model.eval()
    expected = F.cross_entropy(trainer.model.masked_logits(batch["input_ids"], batch["positions"]), batch["targets"])
    assert trainer.evaluate() == {"loss": pytest.approx(expected.item(), rel=1e-6)}
