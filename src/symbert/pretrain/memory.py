"""The memory of a GPU that a step of pre-training needs, predicted from shapes. Imports no torch.

The most of two moments, in bytes, with P parameters, W processes that share them (or 1), N = tokens of the sequences
that are computed at a time, and m logits:

    after backward   (16 P) / W                       weights, gradients and AdamW's two moments, in float32
    before it        (12 P) / W + copies + kept N + 12 m

`kept` are the bytes of a token that the layers of `symbert.model.layers` keep for their gradients, with hidden size h
and intermediate size i, where attention keeps no matrix of its weights: 26 h + 4 i of a layer in 16 bits, 34 h + 8 i in
32 (docs/pretraining.md has them one by one), and 5 h of the embeddings. With `recompute_activations` they are 4 h of a
layer, and all of the one that is computed again. Of logits there are log-probabilities and two gradients. Copies are
those of the weights in 16 bits, 2 P. Gradients of sequences that were computed before count before backward, too.
Processes that share parameters gather what lies outside the layers, with its gradients, and two layers, with the
gradients of one and a copy of these, from which they are exchanged.

Operators count as `original`, but for their parameters; compiled models need less. What CUDA itself and gaps between
tensors take comes on top.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

from symbert.hosts import HOSTS
from symbert.layout import Experiment, Run
from symbert.pretrain.rows import longest_rows_of
from symbert.pretrain.storage import FLOAT32, parameters_of, storage_of
from symbert.sizes import SIZES, Shape

HALF = 2  # bytes of a number in 16 bits
LOGIT = 12  # bytes


@dataclass(frozen=True)
class MemoryNeed:
    """What a step needs on each GPU, in bytes."""

    shape: Shape
    parameters: int
    outside: int  # of these, outside the layers
    tokens: float  # of a sequence that the layers read
    logits: float  # of a sequence
    moments: float  # numbers that the optimizer keeps of each weight
    share: int  # sequences of a batch that a GPU computes
    sequences: int  # of these, at a time
    processes: int
    in_16_bits: bool
    recomputes: bool
    shards: bool

    @property
    def parts(self) -> int:
        """Over how many processes weights, gradients and moments are spread."""
        return self.processes if self.shards else 1

    @property
    def state(self) -> float:
        """Weights, gradients and moments."""
        return FLOAT32 * (2 + self.moments) * self.parameters / self.parts

    @property
    def gathered(self) -> float:
        """What a process gathers from the others while it computes, with its gradients."""
        layer = (self.parameters - self.outside) / self.shape.num_hidden_layers
        return FLOAT32 * (2 * self.outside + 4 * layer) if self.parts > 1 else 0.0

    @property
    def activations(self) -> float:
        """What is kept from forward to backward, logits and copies of weights included."""
        hidden, layers = self.shape.hidden_size, self.shape.num_hidden_layers
        of_layer, copies = 34 * hidden + 8 * self.shape.intermediate_size, 0
        if self.in_16_bits:
            of_layer, copies = 26 * hidden + 4 * self.shape.intermediate_size, HALF * self.parameters
        tokens, logits = self.sequences * self.tokens, LOGIT * self.sequences * self.logits
        if self.recomputes:
            return copies + tokens * (5 + 4 * layers) * hidden + max(tokens * of_layer, logits)
        return copies + tokens * (5 * hidden + layers * of_layer) + logits

    @property
    def total(self) -> float:
        """The most at any moment."""
        gradients = 0 if self.sequences == self.share else FLOAT32 * self.parameters / self.parts
        held = self.state - FLOAT32 * self.parameters / self.parts
        return max(self.state, held + gradients + self.gathered + self.activations)

    def alternatives(self) -> Iterator["MemoryNeed"]:
        """Other ways to compute the same batches, those that cost least time first: fewer sequences at a time,
        activations computed again, parameters shared, by twice as many processes, and so on."""
        batch, processes = self.share * self.processes, max(2, self.processes)
        widths = [self]
        while processes <= batch and batch % processes == 0:
            share = batch // processes
            widths.append(
                replace(self, processes=processes, shards=True, share=share, sequences=min(self.sequences, share))
            )
            processes *= 2
        for width, recomputes in product(widths, dict.fromkeys((self.recomputes, True))):
            sequences = width.sequences
            while sequences:
                yield replace(width, sequences=sequences, recomputes=recomputes)
                sequences //= 2

    @property
    def keys(self) -> dict[str, int | bool]:
        """The keys of `pretrain` that say how it is computed."""
        return {
            "processes": self.processes,
            "shard_parameters": self.shards,
            "recompute_activations": self.recomputes,
            "micro_batch_size": self.sequences,
        }


def memory_need(experiment: Experiment, run: Run) -> MemoryNeed:
    """What a run of this experiment needs on each GPU; `auto` is taken for bf16."""
    chosen, settings, shape = experiment.config["pretrain"], experiment.training(run.host), SIZES[run.size]
    host, rows = HOSTS[run.host], longest_rows_of(experiment, run.host)
    vocabulary = rows.vocabulary_size
    parameters, share = parameters_of(run, vocabulary), ceil(settings.batch_size / chosen["processes"])
    tokens, logits = host.reads(rows)
    return MemoryNeed(
        shape,
        parameters,
        outside=host.parameters(replace(shape, num_hidden_layers=0), vocabulary),
        tokens=tokens,
        logits=logits,
        moments=storage_of(parameters, settings).moments,
        share=share,
        sequences=min(chosen["micro_batch_size"] or share, share),
        processes=chosen["processes"],
        in_16_bits=settings.precision != "fp32",
        recomputes=chosen["recompute_activations"],
        shards=chosen["shard_parameters"],
    )
