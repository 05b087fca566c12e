"""Lines of text, to be translated: what an encoder-decoder is trained on, with `parallel_text`.

Translations are scored by sacrebleu (Post 2018), from counts that add up over batches and processes: chrF (Popović
2015) and BLEU (Papineni et al. 2002), both of a whole set of texts, from 0 to 100.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from symbert.configuration import PretrainSettings
from symbert.files import read_json, verify_sha256
from symbert.hosts import Rows
from symbert.model.bert import EncoderDecoderModel
from symbert.paths import Run
from symbert.pretrain.data import REMEDY, PackedRows
from symbert.pretrain.objective import IGNORED, Batch, Objective
from symbert.pretrain.parallel_text import END, PADDING, REFERENCES, START, VOCABULARY, TextPieces

MOST_WRITTEN = 3  # times as many tokens as the source has; more are not written (Marian's max-length-factor)


@dataclass(frozen=True)
class PairBatch(Batch):
    """Ids `batch token` of sources, which of them are no padding, those that the decoder reads, and what follows each.

    Of padding the target is IGNORED.
    """

    source: Tensor
    source_mask: Tensor
    target: Tensor
    targets: Tensor

    @classmethod
    def of(cls, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> "PairBatch":
        """The batch of sources and targets `batch token`, each padded at its end."""
        source, target = map(torch.from_numpy, (sources, targets))
        following = target[:, 1:]
        return cls(source, source != PADDING, target[:, :-1], following.where(following != PADDING, IGNORED))


class Translation(Objective):
    """The target line of a pair, to be written token by token. Each training pair comes once in an epoch.

    The rows of a batch are padded to its longest source and its longest target.
    """

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path) -> None:
        super().__init__(run, settings)
        fields = {"sequence_length": int, "mean_tokens": {str: float}, "vocabulary_sha256": str}
        facts = read_json(manifest, fields, REMEDY)
        self.longest, mean = facts["sequence_length"], facts["mean_tokens"]
        self.training, self.validation = (
            [PackedRows(manifest, f"{split}-{side}") for side in ("source", "target")]
            for split in ("train", "validation")
        )
        self.training_count, self.validation_count = len(self.training[0]), len(self.validation[0])
        verify_sha256(manifest.parent / VOCABULARY, facts["vocabulary_sha256"], REMEDY)  # which is no shard
        self.pieces = TextPieces.read(manifest.parent / VOCABULARY)
        self.rows = Rows(len(self.pieces.pieces), mean["source"], target_tokens=mean["target"])
        self.references = read_json(manifest.parent / REFERENCES, [str], REMEDY)

    def build_model(self, attention_dropout: float) -> EncoderDecoderModel:
        """An encoder and a decoder of one size."""
        config = self.configuration(attention_dropout)
        config.bos_token_id, config.eos_token_id = START, END
        return EncoderDecoderModel(config)

    def training_batch(self, step: int) -> PairBatch:
        """The pairs of step `step` (from 0)."""
        _, rows = self.order(step)
        return _batch_of(self.training, rows)

    def validation_batch(self, rows: NDArray[np.int64]) -> PairBatch:
        """Held-out pairs."""
        return _batch_of(self.validation, rows)

    def logits(self, model: EncoderDecoderModel, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """`batch token vocab`: of what follows each token of the target."""
        return model.logits(source, source_mask, target)

    def of_one_shape(self, batch: PairBatch) -> PairBatch:
        """The batch padded to the longest rows that there may be."""
        source, target = ((0, self.longest - ids.shape[1]) for ids in (batch.source, batch.target))
        return PairBatch(
            F.pad(batch.source, source, value=PADDING),
            F.pad(batch.source_mask, source, value=False),
            F.pad(batch.target, target, value=PADDING),
            F.pad(batch.targets, target, value=IGNORED),
        )

    def translate(self, model: EncoderDecoderModel, source: Tensor, source_mask: Tensor) -> list[str]:
        """The line that the model writes for each source, by its most probable tokens one by one, as text."""
        limits = (MOST_WRITTEN * source_mask.sum(1)).clamp(max=self.longest).tolist()
        written = model.generate(source, source_mask, START, END, max(limits)).tolist()
        return [self.pieces.decode(ids[:limit]) for ids, limit in zip(written, limits, strict=True)]

    def tally(self, model: EncoderDecoderModel, rows: NDArray[np.int64], device: torch.device) -> list[float]:
        """What chrF and BLEU of the model's translations of held-out sources are computed from."""
        if not len(rows):
            return count_matches([], [])
        batch = self.validation_batch(rows).to(device)
        written = self.translate(model, batch.source, batch.source_mask)
        return count_matches(written, [self.references[row] for row in rows.tolist()])

    def scores(self, tally: list[float]) -> dict[str, float]:
        """chrF and BLEU of all held-out targets, as their files have them."""
        return scores_of(tally)

    @property
    def signatures(self) -> dict[str, str]:
        """How each score is computed."""
        return signatures()

    def flops(self, model: EncoderDecoderModel) -> float:
        """Of both sides of pairs of mean length, without padding."""
        return model.step_flops(self.settings.batch_size, self.rows.tokens, self.rows.target_tokens)


def _batch_of(pairs: list[PackedRows], rows: NDArray[np.int64]) -> PairBatch:
    """Pairs without the columns in which no row has a token."""
    sources, targets = (side[rows] for side in pairs)
    return PairBatch.of(*(ids[:, : (ids != PADDING).sum(1).max()] for ids in (sources, targets)))


@cache
def _metrics() -> dict[str, tuple[Any, int]]:
    """The metrics by name, each with how many counts it is computed from."""
    from sacrebleu.metrics import BLEU, CHRF  # of no other host

    made = {"chrf": CHRF(), "bleu": BLEU()}
    # Before it has seen a reference, a metric's signature does not know of how many it is.
    return {name: (one, len(one._extract_corpus_statistics(["text"], [["text"]])[0])) for name, one in made.items()}


def count_matches(texts: Sequence[str], references: Sequence[str]) -> list[float]:
    """What both scores are computed from: sums over texts, each with its reference."""
    counts = []
    for metric, length in _metrics().values():
        of_texts = metric._extract_corpus_statistics(texts, [references])
        counts += [sum(column) for column in zip([0] * length, *of_texts, strict=True)]
    return counts


def scores_of(counts: Sequence[float]) -> dict[str, float]:
    """The scores by name, from what `count_matches` counted of all texts."""
    scores, rest = {}, [round(count) for count in counts]
    for name, (metric, length) in _metrics().items():
        scores[name], rest = metric._compute_score_from_stats(rest[:length]).score, rest[length:]
    return scores


def signatures() -> dict[str, str]:
    """How each score is computed, in sacrebleu's words: what a number must be cited with."""
    return {name: str(metric.get_signature()) for name, (metric, _) in _metrics().items()}
