"""What the attention of a model looks like, head by head: its weights, and what it does with rows of text.

The scores of W_Q W_Kᵀ are those of Saponati et al., "The underlying structures of self-attention: symmetry,
directionality, and emergent dynamics in Transformer training", ICML 2025, arXiv 2502.10927.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.utils import logging

from symbert.errors import IntegrityError, MissingInputError
from symbert.model.attention import SelfAttention
from symbert.model.bert import SymBertConfig, SymBertModel
from symbert.model.configuration import read_configuration
from symbert.model.logits import logits_of, weights_of
from symbert.model.weights import reading_weights

DEVIATIONS = 2  # above the mean: rows and columns that count for the directionality, as in the authors' code
ROUNDING = 1e-6  # of weights in float32, relative
KINDS = ("symbert", "bert")  # of checkpoints, by 'model_type' in config.json


def symmetry_of(matrix: Tensor) -> float:
    """(‖S‖² − ‖N‖²) / ‖M‖², where S and N are the symmetric and the skew-symmetric part of M: 1 for a symmetric matrix,
    −1 for a skew-symmetric one, about 0 for a random one."""
    return ((matrix * matrix.mT).sum() / (matrix**2).sum()).item()


def directionality_of(matrix: Tensor) -> float:
    """(c − r) / (c + r), where c is by how much norms of columns exceed their mean by more than two deviations, summed,
    and r that of rows: 1 where only columns stand out, −1 where only rows do, 0 where none does."""
    columns, rows = (_excess(torch.linalg.vector_norm(matrix, dim=side)) for side in (0, 1))
    difference, total = columns - rows, columns + rows
    return difference / total if abs(difference) > ROUNDING * total else 0.0


def _excess(norms: Tensor) -> float:
    return (
        (norms - norms.mean() - DEVIATIONS * norms.std()).clamp(min=0).sum().item()
        if norms.std() > ROUNDING * norms.mean()
        else 0.0
    )


@torch.no_grad()
def anatomy_of(model: SymBertModel, rows: Tensor) -> list[dict[str, Any]]:
    """A dictionary per layer and head, both counted from 1, of whatever operator the model has.

    On `rows` (`batch token`, no padding) and without dropout: `logit_std` over all pairs of tokens, and as means over
    the tokens that attend `attention_entropy` (nats) and `own_share`, the attention of a token to itself.
    `symmetry` and `directionality` are None for an operator that is not affine in the hidden states, token by token.
    """
    heads: list[dict[str, Any]] = []

    def describe(module: SelfAttention, inputs: tuple[Tensor, ...]) -> None:
        layer = heads[-1]["layer"] + 1 if heads else 1
        logits, weights = logits_of(module, inputs[0]), weights_of(module, inputs[0])
        products = _products(module)
        for head in range(logits.shape[1]):
            product = None if products is None else products[head]
            heads.append(
                {
                    "layer": layer,
                    "head": head + 1,
                    "symmetry": None if product is None else symmetry_of(product),
                    "directionality": None if product is None else directionality_of(product),
                    "logit_std": logits[:, head].std(correction=0).item(),
                    "attention_entropy": torch.special.entr(weights[:, head]).sum(-1).mean().item(),
                    "own_share": weights[:, head].diagonal(dim1=-2, dim2=-1).mean().item(),
                }
            )

    layers = [module for module in model.modules() if isinstance(module, SelfAttention)]
    hooks = [layer.register_forward_pre_hook(describe) for layer in layers]
    try:
        model.eval()(rows)
    finally:
        for hook in hooks:
            hook.remove()
    return heads


def _products(module: SelfAttention) -> Tensor | None:
    """W_Q W_Kᵀ of each head, `heads hidden hidden`, read off unit vectors; None where that is not all there is."""
    hidden_size = module.config.hidden_size
    units, zeros = torch.eye(hidden_size)[None], torch.zeros(1, hidden_size, hidden_size)
    random = torch.randn(1, hidden_size, hidden_size, generator=torch.Generator().manual_seed(0))
    biases, weights, sides = (module.query_key_value(hidden)[:2] for hidden in (zeros, units, random))
    query, key = (side - bias for side, bias in zip(weights, biases, strict=True))
    for side, bias, product in zip(sides, biases, (random @ query, random @ key), strict=True):
        if not torch.allclose(side - bias, product, rtol=1e-3, atol=1e-3):
            return None
    return query[0].double() @ key[0].double().mT


def load_encoder(checkpoint: Path) -> SymBertModel:
    """The encoder of a directory with config.json and model.safetensors, of this project or any BERT, in float32.

    MissingInputError, ConfigError or IntegrityError name the file.
    """
    for name in ("config.json", "model.safetensors"):
        if not (checkpoint / name).is_file():
            raise MissingInputError(f"{checkpoint / name}: file not found; give the directory of a BERT")
    config = SymBertConfig.from_dict(vars(read_configuration(checkpoint, KINDS)))
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with reading_weights(checkpoint / "model.safetensors", "write it again"):
        model, report = SymBertModel.from_pretrained(
            checkpoint, config=config, add_pooling_layer=False, output_loading_info=True, local_files_only=True
        )
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        raise IntegrityError(
            f"{checkpoint / 'model.safetensors'}: lacks {missing[0]} and {len(missing) - 1} more weights"
        )
    return model.float().eval()
