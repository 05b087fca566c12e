"""Who trains in `make bench-pretrain`, each a few steps at a time: this project, and the authors' way.

The authors' way is Hugging Face's `Trainer` with `DataCollatorForLanguageModeling` and the stock model;
docs/measurements/README.md says how it differs from their scripts. It needs accelerate, which only this benchmark has.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from msgspec.structs import replace
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling

from symbert.configuration import PretrainSettings
from symbert.paths import Run
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES


@dataclass(frozen=True)
class Task:
    """What both train: the size, the settings, the rows, and how many sequences are computed at a time."""

    size: str
    settings: PretrainSettings
    manifest: Path
    tokens: int  # of a row
    micro_batch_size: int
    untimed: int  # steps before the clock starts, each time
    workers: int  # processes that collate for the authors' way; 0: the training process itself


class Ours:
    """One operator in this project's trainer."""

    def __init__(self, task: Task, attention: str, recipe: str) -> None:
        settings = replace(task.settings, recipe=recipe)
        self.task, self.completed = task, 0
        self.trainer = Trainer(
            Run(task.size, attention, 1), settings, task.manifest, micro_batch_size=task.micro_batch_size
        )

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many."""
        self._advance(self.task.untimed)
        return timed(lambda: self._advance(steps)) / steps

    def _advance(self, steps: int) -> None:
        for _ in range(steps):
            self.trainer.step(self.completed)
            self.completed += 1

    def flops(self) -> float:
        """Floating-point operations that a step needs, with the head on masked tokens alone."""
        return self.trainer.task.flops(self.trainer.model)


class Authors:
    """Hugging Face's `Trainer` on the same rows: no evaluation, no saving, no logging."""

    def __init__(self, task: Task, compiled: bool, folder: Path) -> None:
        self.task, self.clock = task, Clock()
        tokenizer = BertTokenizerFast(str(task.manifest.parent / "vocab.txt"))
        self.rows = ListedRows(task.manifest)
        self.collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=task.settings.mask_probability)
        self.trainer = transformers.Trainer(
            stock_model(task.size, len(tokenizer), task.settings.dropout),
            arguments(task, compiled, folder),
            data_collator=self.collator,
            train_dataset=self.rows,
            callbacks=[self.clock],
        )
        self.trainer.remove_callback(transformers.PrinterCallback)
        if self.trainer.args.train_batch_size != task.micro_batch_size:
            raise SystemExit(
                f"Trainer computes {self.trainer.args.train_batch_size} sequences at a time instead of "
                f"{task.micro_batch_size}: on {self.trainer.args.n_gpu} GPUs; show it one, with CUDA_VISIBLE_DEVICES=0"
            )
        if compiled and torch.cuda.is_available():
            settle_tf32()

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many, from the end of one step to the end of another."""
        self.clock.first, self.clock.last = self.task.untimed, self.task.untimed + steps
        self.trainer.train()
        return (self.clock.ended - self.clock.begun) / steps


class ListedRows(Dataset):
    """Rows as `datasets` gives them: lists of Python numbers, of the columns that the authors' model takes."""

    def __init__(self, manifest: Path) -> None:
        self.rows = np.load(manifest.parent / "train-00000.npy", mmap_mode="r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        ids = self.rows[index].tolist()
        return {"input_ids": ids, "token_type_ids": [0] * len(ids), "attention_mask": [1] * len(ids)}


class Clock(transformers.TrainerCallback):
    """Notes the ends of two steps, and stops the training at the second."""

    first = last = 0
    begun = ended = 0.0

    def on_step_end(self, args, state, control, **_) -> None:
        """Hugging Face's hook."""
        if state.global_step == self.first:
            self.begun = now()
        if state.global_step == self.last:
            self.ended = now()
            control.should_training_stop = True


def stock_model(size: str, vocabulary_size: int, dropout: float) -> BertForMaskedLM:
    """Hugging Face's own model, with its own initial weights."""
    shape = vars(SIZES[size])
    dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForMaskedLM(BertConfig(vocab_size=vocabulary_size, **shape, **dropouts))


def arguments(task: Task, compiled: bool, folder: Path) -> transformers.TrainingArguments:
    """The paper's settings; what the authors' scripts leave at its default; nothing but training."""
    settings, cuda = task.settings, torch.cuda.is_available()
    return transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=settings.steps,
        per_device_train_batch_size=task.micro_batch_size,
        gradient_accumulation_steps=settings.batch_size // task.micro_batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_beta1,
        adam_beta2=settings.adam_beta2,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.gradient_clip,
        optim="adamw_torch_fused",
        bf16=cuda,
        use_cpu=not cuda,
        torch_compile=compiled,
        dataloader_num_workers=task.workers,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,  # it would wait for each loss
        report_to="none",
        disable_tqdm=True,
    )


def settle_tf32() -> None:
    """Finish what TrainingArguments of a compiled model begin: products in fp32 may use TF32, in the whole process.

    They set only torch's new switch; the old one, which torch.compile reads, refuses to answer until it agrees.
    """
    torch.set_float32_matmul_precision("high")


def now() -> float:
    """Seconds on a clock, once the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes."""
    begun = now()
    work()
    return now() - begun
