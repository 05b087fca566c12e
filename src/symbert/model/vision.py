"""A vision encoder: the patches of a picture are tokens, with one before them that the classifier reads.

What Hugging Face's `ViTForImageClassification` computes (Dosovitskiy et al. 2021, arXiv 2010.11929), under its
parameters' names but for the operator's own: its `q_proj`, `k_proj` and `v_proj` are `self.query`, `self.key` and
`self.value`. LayerNorm stands before attention and before the feed-forward half.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.errors import ConfigError
from symbert.flops import vision_step_flops
from symbert.model.configuration import Configuration, refuse_rotary
from symbert.model.layers import Layers
from symbert.model.network import HostModel
from symbert.model.parameters import matrix_weights
from symbert.model.sites import attention_of


class Patches(nn.Module):
    """Each patch of a picture, projected."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        size = config.patch_size
        self.projection = nn.Conv2d(config.num_channels, config.hidden_size, kernel_size=size, stride=size)

    def forward(self, pixels: Tensor) -> Tensor:
        """`batch patch hidden`, row after row of the picture."""
        return self.projection(pixels).flatten(2).transpose(1, 2)


class PatchEmbeddings(nn.Module):
    """The token that is read, and the patches, each with its place."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        patches = (config.image_size // config.patch_size) ** 2
        self.cls_token = nn.Parameter(torch.empty(1, 1, config.hidden_size))
        self.position_embeddings = nn.Parameter(torch.empty(1, patches + 1, config.hidden_size))
        self.patch_embeddings = Patches(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, pixels: Tensor) -> Tensor:
        """`batch token hidden`."""
        first = self.cls_token.expand(len(pixels), -1, -1)
        tokens = torch.cat((first, self.patch_embeddings(pixels)), dim=1)
        return self.dropout(tokens + self.position_embeddings)


class PatchAttention(nn.Module):
    """The operator of a layer and its projection."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.self = attention_of(config)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """`batch token hidden`."""
        return self.o_proj(self.self(hidden)[0])


class FeedForward(nn.Module):
    """The wide half of a layer."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """`batch token hidden`."""
        return self.fc2(F.gelu(self.fc1(hidden)))


class PatchLayer(nn.Module):
    """Attention, then the feed-forward half, each of normalised tokens and added to what it began with."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.attention = PatchAttention(config)
        self.layernorm_before = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.layernorm_after = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.mlp = FeedForward(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor) -> Tensor:
        """`batch token hidden`."""
        hidden = hidden + self.dropout(self.attention(self.layernorm_before(hidden)))
        return hidden + self.dropout(self.mlp(self.layernorm_after(hidden)))


class Vit(nn.Module):
    """Embeddings and layers."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.embeddings = PatchEmbeddings(config)
        self.layers = Layers(PatchLayer(config) for _ in range(config.num_hidden_layers))
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, pixels: Tensor) -> Tensor:
        """The last hidden states `batch token hidden`."""
        return self.layernorm(self.layers(self.embeddings(pixels)))


class VisionModel(HostModel):
    """The encoder with a classifier; of the configuration it reads `image_size`, `patch_size`, `num_channels` and
    `num_labels` too.

    ConfigError for a picture that is not cut into whole patches.
    """

    def __init__(self, config: Configuration) -> None:
        refuse_rotary(config, "a model of patches")
        own = copy.copy(config)
        own.architectures = ["VisionModel"]
        if own.image_size % own.patch_size:
            raise ConfigError(
                f"config: 'patch_size' is {own.patch_size}, which does not divide 'image_size' ({own.image_size}); "
                "choose a divisor"
            )
        super().__init__(own)
        self.vit = Vit(own)
        self.classifier = nn.Linear(own.hidden_size, own.num_labels)

    @property
    def base_model(self) -> Vit:
        """The part below the classifier (Hugging Face's word)."""
        return self.vit

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits `batch label` of pictures `batch channel height width`."""
        return self.classifier(self.vit(pixels)[:, 0])

    logits = forward

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As BERT's start; places and the token that is read as Hugging Face draws them."""
        deviation = self.config.initializer_range
        if isinstance(module, PatchEmbeddings):
            nn.init.trunc_normal_(module.position_embeddings, 0.0, deviation)
            nn.init.trunc_normal_(module.cls_token, 0.0, deviation)
        elif isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, 0.0, deviation)
            nn.init.zeros_(module.bias)
        else:
            super()._init_weights(module)

    def step_flops(self, images: int) -> float:
        """Operations, forward and backward, of a step on so many pictures."""
        config, weights = self.config, matrix_weights(self.vit.layers)
        picture = config.image_size, config.patch_size, config.num_channels
        return vision_step_flops(config, weights, images, *picture, config.num_labels)
