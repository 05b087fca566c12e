#!/usr/bin/env bash
# An embedding with a padding index, of several models at once by vmap.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile torch==2.13.0

venv/bin/python - <<'PY'
import torch
from torch.nn import functional as F

weights = torch.zeros(3, 2, 1, requires_grad=True)  # of three models: two pieces, of which 0 is padding
ids = torch.tensor([[0, 1]]).expand(3, -1)
torch.vmap(lambda weight, ids: F.embedding(ids, weight, padding_idx=0))(weights, ids).sum().backward()
seen = weights.grad[..., 0].tolist()
print(f"torch {torch.__version__}: vmap of F.embedding(ids, weight, padding_idx=0) over three weights, ids 0 and 1")
print("expected: the gradient of piece 0 is zero in each model: [[0, 1], [0, 1], [0, 1]]")
print(f"seen: {seen}")
assert seen == [[0, 1], [1, 1], [1, 1]], "this has changed"
PY
