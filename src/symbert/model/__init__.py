"""BERT with an exchangeable self-attention operator."""
