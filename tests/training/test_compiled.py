"""What the recipe `fast` makes of attention: the graph that is compiled, on a CPU.

The kernel that a GPU takes follows from the arguments that are checked here (docs/evidence/gpu-check.md).
"""

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn import functional as F

from symbert.model.configuration import configuration_of
from symbert.model.network import MaskedModel, initialize
from symbert.operators import OPERATORS
from symbert.pretrain.train import MaskedLoss

PIECES, ROWS, TOKENS = 300, 2, 16
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


@pytest.mark.parametrize("attention", OPERATORS)
def test_a_model_that_is_given_no_mask_is_compiled_without_one(attention):
    """An H100 took 0.76 of the speed of `faithful`, and 9 GB more: attention had become products and a softmax.

    Without a mask transformers' BERT makes none; while it was compiled, it made one of ones, whose last stride was 0.
    No kernel takes that.
    """
    torch.compiler.reset()
    config, recorder = configuration_of("tiny", attention, PIECES, dropout=0.0), Recorder()
    config.num_hidden_layers = 1
    model = MaskedModel(config)
    initialize(model, seed=1)
    objective = torch.compile(MaskedLoss(model.train()), fullgraph=True, dynamic=False, backend=recorder)
    ids, positions = torch.randint(5, PIECES, (ROWS, TOKENS)), torch.arange(10)
    with torch.autocast("cpu", torch.bfloat16):
        objective(ids, positions, ids.flatten()[positions]).backward()

    (call,) = recorder.calls
    mask = call.kwargs["attn_mask"]
    assert (mask is None) == (attention != "symmetric-others")
    assert mask is None or mask.meta["example_value"].stride(-1) == 1
    assert [recorder.operations.count(f"{FUSED}{end}.default") for end in ("", "_backward")] == [1, 1]
    assert not [name for name in recorder.operations if "softmax" in name and "_log_softmax" not in name]
