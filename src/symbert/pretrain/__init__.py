"""Masked-language-model training that survives interruption."""
