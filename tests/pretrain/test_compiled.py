"""What the recipe `fast` makes of attention: the graph that is compiled, on a CPU.

The kernel that a GPU takes follows from the arguments that are checked here (docs/measurements/gpu-check.md).
"""

from functools import partial

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn import functional as F

from symbert.paths import Run
from symbert.pretrain.train import Trainer

FUSED = "aten._scaled_dot_product_flash_attention_for_cpu"


class Recorder:
    """A compiler that keeps the graphs that it is given, and compiles nothing."""

    def __init__(self):
        self.calls, self.operations = [], []  # of attention, as the model makes them; of forward and backward pass

    def __call__(self, graph, inputs):
        self.calls += [node for node in graph.graph.nodes if node.target is F.scaled_dot_product_attention]
        return aot_autograd(fw_compiler=self.keep, bw_compiler=self.keep)(graph, inputs)

    def keep(self, graph, inputs):
        self.operations += [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
        return make_boxed_func(graph)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared", "symmetric-others"])
def test_a_model_that_is_given_no_mask_is_compiled_without_one(attention, manifest, brief, monkeypatch):
    """An H100 took 0.76 of the speed of `faithful`, and 9 GB more: attention had become products and a softmax.

    Without a mask transformers' BERT makes none; while it was compiled, it made one of ones, whose last stride was 0.
    No kernel takes that.
    """
    torch.compiler.reset()
    recorder = Recorder()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=recorder))
    settings = brief(recipe="fast", precision="bf16", dropout=0.0)
    trainer = Trainer(Run("tiny", attention, 1), settings, manifest)
    trainer.step(0)

    layers = trainer.model.config.num_hidden_layers
    assert len(recorder.calls) == layers
    for call in recorder.calls:
        mask = call.kwargs["attn_mask"]
        assert (mask is None) == (attention != "symmetric-others")
        assert mask is None or mask.meta["example_value"].stride(-1) == 1
    assert [recorder.operations.count(f"{FUSED}{end}.default") for end in ("", "_backward")] == [layers, layers]
    assert not [name for name in recorder.operations if "softmax" in name and "_log_softmax" not in name]
