"""Fine-tune one pre-trained checkpoint on every task with every seed, and score it.

Each (task, seed) leaves its record and predictions in the state directory (see `symbert.glue.kept`). So one more
seed computes only that seed; the declared outputs are put together from these records.
"""

from pathlib import Path

from symbert.errors import UsageError
from symbert.files import write_json
from symbert.glue.job import Finetuning, open_job


def finetune(
    checkpoint: Path,
    data: list[Path],
    settings: Path,
    size: str,
    attention: str,
    pretrain_seed: int,
    step: int,
    finetune_seeds: list[int],
    state: Path,
    output: list[Path],
    threads: int,
    keep_finetuned: int | None = None,
) -> None:
    """Write, for each prepared task in `data`, the list of its records (one per seed) to its file in `output`.

    A record names model, checkpoint, task and seed and holds, by score column from 0 to 1, `metrics`, `details`
    (the metrics whose mean it is) and `majority` (the score of the best constant prediction). Fine-tuned weights
    stay in `state` where `keep_finetuned` is this pre-training step. Raises IntegrityError for a checkpoint without
    all encoder weights and DivergedError for a loss that is not finite.
    """
    if len(data) != len(output):
        raise UsageError(f"finetune: {len(data)} files in --data, {len(output)} in --output; give one output per task")
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    with open_job(checkpoint, settings, state, threads, keep_finetuned == step, **identity) as job:
        for prepared, records in zip(data, output, strict=True):
            finetuning = Finetuning(job, prepared)
            write_json(records, [finetuning.record(seed) for seed in finetune_seeds])
