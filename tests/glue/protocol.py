"""A short protocol of fine-tuning, and a naive loop that follows it."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import get_linear_schedule_with_warmup

from model.models import dense
from symbert.configuration import GlueSettings
from symbert.draws import permute
from symbert.glue.train import Packed

SETTINGS = GlueSettings(
    epochs=2,
    batch_size=16,
    learning_rate=1e-3,
    warmup_ratio=0.1,
    weight_decay=0.0,
    adam_epsilon=1e-8,
    gradient_clip=1.0,
    dropout=0.1,
    precision="fp32",
    compile=False,
)


def padded(model, rows, index):
    """Logits of rows padded to the longest."""
    lists = [rows.input_ids.split(rows.lengths.tolist()), rows.token_type_ids.split(rows.lengths.tolist())]
    ids, types = (pad_sequence(tokens, batch_first=True).long() for tokens in lists)
    attended = pad_sequence([torch.ones(length) for length in rows.lengths], batch_first=True)
    return model(ids[index], attended[index], types[index]).logits


def one_by_one(model, rows, index):
    """Logits of rows that are computed each alone."""
    batches = [Packed(model).batch(rows, np.array([row])) for row in index]
    return torch.cat([dense(model, batch.input_ids[None], None, batch.token_type_ids[None]) for batch in batches])


def naive_training(model, rows, settings, seed, logits_of=padded):
    """Stock AdamW and schedule, one step after the other; gives the norms that were clipped."""
    matrices, vectors = ([p for p in model.parameters() if (p.ndim > 1) == many] for many in (True, False))
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, eps=settings.adam_epsilon, foreach=False)
    steps = settings.epochs * math.ceil(len(rows) / settings.batch_size)
    schedule = get_linear_schedule_with_warmup(optimizer, math.ceil(settings.warmup_ratio * steps), steps)
    norms = []
    for epoch in range(settings.epochs):
        for chosen in np.array_split(permute(np.arange(len(rows)), len(rows), seed, epoch), steps // settings.epochs):
            optimizer.zero_grad()
            F.cross_entropy(logits_of(model, rows, chosen), rows.labels[chosen]).backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_clip).item())
            optimizer.step()
            schedule.step()
    return norms
