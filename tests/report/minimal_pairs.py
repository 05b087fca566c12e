"""Records of how checkpoints judge minimal pairs, made up."""

from symbert.architectures import ENCODER
from symbert.glue.blimp import PARADIGMS


def minimal_pairs(
    attention="original", seed=1, step=1800, right=6, ties=0, pairs=10, size="tiny", architecture=ENCODER, **changes
):
    """A record with these counts in every paradigm, but for those of ellipsis, whose pairs are all judged right."""
    counts = {"pairs": pairs, "right": right, "ties": ties}
    easy = {"pairs": pairs, "right": pairs, "ties": 0}
    named = {} if architecture == ENCODER else {"architecture": architecture}
    return {
        **named,
        "size": size,
        "attention": attention,
        "pretrain_seed": seed,
        "step": step,
        "paradigms": {name: easy if phenomenon == "ellipsis" else counts for name, phenomenon in PARADIGMS.items()},
        "partial": pairs != 1000,
        "stand_in": False,
        "settings_hash": "b11a",
        "versions": {},
        "checkpoint_sha256": f"{architecture}-{size}-{attention}-{seed}-{step}",
        "data_sha256": "pairs",
    } | changes
