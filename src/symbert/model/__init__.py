"""BERT with an exchangeable self-attention operator.

Importing it makes the model type `symbert` known to the Auto classes of transformers. Commands of this project do
without: transformers takes seconds to import, and what trains needs none of it.
"""

import sys

if "symbert.cli" not in sys.modules:
    import symbert.model.bert  # noqa: F401 (registers)
