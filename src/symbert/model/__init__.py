"""BERT with an exchangeable self-attention operator.

Importing it makes the model type `symbert` known to the Auto classes of transformers.
"""

import symbert.model.bert  # noqa: F401 (registers)
