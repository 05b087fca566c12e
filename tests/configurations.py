"""How tests vary the configuration."""

import copy


def merge(base: dict, changes: dict) -> dict:
    """`base` with nested `changes`, as Snakemake merges configurations."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged
