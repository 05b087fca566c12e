"""Pre-training beside the authors' way, Hugging Face's `Trainer`: `make bench-pretrain`.

The Trainer has the stock model, collator and fused AdamW, and neither evaluates, saves nor logs. It needs accelerate.
Both train in this process, a few steps at a time in turn.
"""

import gc
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from msgspec.structs import replace
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling

from benchmarks import harness
from benchmarks.harness import Figure, Round, in_turn, progress, ratio
from symbert.configuration import PretrainSettings, training_of
from symbert.corpus.shards import hash_of_corpus
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.experiment.project import read_yaml
from symbert.files import sha256_of
from symbert.hosts import ENCODER
from symbert.model.hf import fold
from symbert.paths import Run
from symbert.pretrain.compute import AUTOCAST, pick_device, resolve_precision
from symbert.pretrain.tasks import IGNORED
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "safetensors")
OPERATORS = ("original", "symmetric", "pairwise", "shared")
STOCK, COMPILED = "stock Trainer", "Trainer, compiled"  # without and with torch_compile; targets are set beside STOCK
ROWS, VALIDATION_ROWS, TOKENS, VOCABULARY = 8192, 1024, 512, 30_522
DOCUMENT = 600  # tokens of a document on average, [CLS] and [SEP] among them
COMPARED, TOLERANCE = 4, 1e-5  # sequences of a compared batch; of its loss in fp32


@dataclass(frozen=True)
class Protocol:
    """Who trains in a round on a kind of device, and how long."""

    recipes: tuple[str, ...]  # targets are set in the last
    peers: tuple[str, ...]
    untimed: int  # steps before those that are timed, each time
    workers: int  # processes that collate for the authors' way; 0: the training process itself
    loads: dict[str, "Load"]  # by size


class Load(NamedTuple):
    """How much is trained of a size, and how fast this project must be."""

    batch_size: int  # sequences of an optimizer step
    micro_batch_size: int  # sequences computed at a time
    steps: int  # timed, of each contestant in each round
    promised: float  # ratio of tokens/s to STOCK's


CPU = Protocol(
    recipes=("faithful",),
    peers=(STOCK,),
    untimed=1,
    workers=0,  # no core is left for them
    loads={"small": Load(4, 4, 3, 1.7), "base": Load(2, 2, 2, 1.2)},
)
CUDA = Protocol(  # with the paper's batches
    recipes=("faithful", "fast"),
    peers=(STOCK, COMPILED),
    untimed=3,
    workers=8,  # as for each process in the authors' scripts
    loads={"small": Load(256, 128, 10, 2.5), "base": Load(256, 64, 10, 1.5)},
)


class Task(NamedTuple):
    """What both train."""

    size: str
    protocol: Protocol
    manifest: Path

    @property
    def load(self) -> Load:
        return self.protocol.loads[self.size]

    @property
    def settings(self) -> PretrainSettings:
        return settings_of(batch_size=self.load.batch_size)


def settings_of(**changes: Any) -> PretrainSettings:
    """The paper's settings of pre-training, with changes."""
    defaults = read_yaml(Path(__file__).parents[1] / "workflow/defaults.yaml")
    return replace(training_of(defaults, ENCODER), **changes)


def main() -> None:
    """Write the rows, compare the losses, measure, and write the page."""
    parser = harness.options_of("bench-pretrain", __doc__, rounds=5, work="bench-pretrain")
    parser.add_argument("--sizes", nargs="+", choices=["small", "base"], default=["small", "base"])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if torch.cuda.device_count() > 1:
        raise SystemExit(
            f"{torch.cuda.device_count()} GPUs are visible: Trainer would train on all of them, this project on one; "
            "show them one: CUDA_VISIBLE_DEVICES=0 make bench-pretrain"
        )
    torch.set_num_threads(options.threads)
    protocol = CUDA if torch.cuda.is_available() else CPU
    conditions, figures, rounds = conditions_of(protocol, options.rounds), [], [{} for _ in range(options.rounds)]
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        folder = Path(place).resolve()
        manifest = write_corpus(folder / "rows", ROWS, TOKENS, VOCABULARY)
        tasks = [Task(size, protocol, manifest) for size in options.sizes]
        for task in tasks:  # first: the compiled peer allows the whole process to multiply fp32 in TF32
            conditions.append(compare(task))
            progress(conditions[-1])
        for task in tasks:
            figures += measure(task, rounds, folder / task.size)
    tables = [harness.figure_table(figures, rounds), step_table(rounds, protocol)]
    harness.write_page(options.output, "pre-training", conditions, tables)


def conditions_of(protocol: Protocol, rounds: int) -> list[str]:
    """On what, how, and how often it is measured."""
    device, lines = pick_device(), [harness.machine(), harness.versions(*PACKAGES)]
    if device.type == "cuda":
        peak = f"{measure_peak(device, 'bf16') / 1e12:.0f} TFLOP/s in a dense bf16 product"
        lines.append(f"{torch.cuda.get_device_name()}, {torch.cuda.mem_get_info()[1] / 1e9:.0f} GB, {peak}")
    steps = ", ".join(f"{load.steps} steps of {size}" for size, load in protocol.loads.items())
    return [
        *lines,
        f"{resolve_precision('auto', device)}; {torch.get_num_threads()} threads; all in one process",
        f"interleaved rounds: {rounds}; timed in each, of each contestant: {steps}; after {protocol.untimed} not timed",
        f"peers, {' and '.join(protocol.peers)}: no evaluation, saving or logging meanwhile; processes that collate "
        f"beside them: {protocol.workers}",
        f"targets of tokens/s are set beside {STOCK}, in the recipe {protocol.recipes[-1]}",
    ]


def measure(task: Task, rounds: list[Round], folder: Path) -> list[Figure]:
    """Add the seconds of a step of each contestant of a size to the rounds; the figures made of them."""
    protocol, size = task.protocol, task.size
    torch.compiler.reset()  # what an earlier size left: compiled graphs, and memory
    gc.collect()
    built = {f"{size}: {peer}": Authors(task, peer == COMPILED, folder) for peer in protocol.peers}
    built |= {
        f"{size}: {each}, {recipe}": Ours(task, each, recipe) for recipe in protocol.recipes for each in OPERATORS
    }
    for number, measured in enumerate(rounds):
        for name in in_turn(built, number):
            measured[name] = built[name].seconds(task.load.steps)
            progress(f"round {number + 1}: {name}: {measured[name]:.3f} s a step")
        if torch.cuda.is_available():
            measured[f"{size}: peak"] = measure_peak(pick_device(), "bf16")
    figures, pairs = [], [(recipe, attention) for recipe in protocol.recipes for attention in OPERATORS]
    for peer in protocol.peers:
        for recipe, attention in pairs:
            promised = task.load.promised if recipe == protocol.recipes[-1] and peer == STOCK else None
            faster = ratio(f"{size}: {peer}", f"{size}: {attention}, {recipe}")
            figures.append(Figure(f"{size}: tokens/s, {attention}, {recipe} / {peer}", "×", faster, at_least=promised))
    for recipe, attention in pairs:
        if attention in ("symmetric", "pairwise"):
            slower = ratio(f"{size}: {attention}, {recipe}", f"{size}: original, {recipe}")
            figures.append(Figure(f"{size}: step time, {attention} / original, {recipe}", "×", slower, at_most=1))
    for recipe, attention in pairs if torch.cuda.is_available() else ():
        name = f"{size}: {attention}, {recipe}"
        share = partial(_share_of_peak, name, f"{size}: peak", built[name].flops())
        wanted = 45 if size == "base" and recipe == "fast" else None
        figures.append(Figure(f"{name}: MFU", "%", share, at_least=wanted))
    return figures


def _share_of_peak(name: str, peak: str, flops: float, measured: Round) -> float:
    return 100 * flops / measured[name] / measured[peak]


def step_table(rounds: Sequence[Round], protocol: Protocol) -> str:
    """Seconds of a step and tokens per second of each contestant."""
    rows = []
    for name in sorted(name for name in rounds[0] if not name.endswith(": peak")):
        seconds, batch = [measured[name] for measured in rounds], protocol.loads[name.partition(": ")[0]].batch_size
        median, span = statistics.median(seconds), f"{min(seconds):.3f}–{max(seconds):.3f}"
        speed = f"{batch * TOKENS / median:,.0f}"
        rows.append(f"| {name} | {batch} × {TOKENS} | {median:.3f} | {span} | {speed} |")
    head = "| contestant | batch | seconds of a step | range over the rounds | tokens/s |"
    return harness.table(head, "|---|---:|---:|---:|---:|", rows)


class Ours:
    """One operator in this project's trainer."""

    def __init__(self, task: Task, attention: str, recipe: str) -> None:
        self.untimed, self.completed = task.protocol.untimed, 0
        run, settings = Run(task.size, attention, 1), replace(task.settings, recipe=recipe)
        self.trainer = Trainer(run, settings, task.manifest, micro_batch_size=task.load.micro_batch_size)

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many."""
        self._advance(self.untimed)
        begun = now()
        self._advance(steps)
        return (now() - begun) / steps

    def _advance(self, steps: int) -> None:
        for _ in range(steps):
            self.trainer.step(self.completed)
            self.completed += 1

    def flops(self) -> float:
        """Floating-point operations that a step needs, with the head on masked tokens alone."""
        return self.trainer.task.flops(self.trainer.model)


class Authors:
    """Hugging Face's `Trainer` on the same rows."""

    def __init__(self, task: Task, compiled: bool, folder: Path) -> None:
        self.untimed, self.clock = task.protocol.untimed, Clock()
        tokenizer = BertTokenizerFast(str(task.manifest.parent / "vocab.txt"))
        self.trainer = transformers.Trainer(
            stock_model(task.size, len(tokenizer), task.settings.dropout),
            arguments(task, compiled, folder),
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=task.settings.mask_probability),
            train_dataset=ListedRows(task.manifest),
            callbacks=[self.clock],
        )
        self.trainer.remove_callback(transformers.PrinterCallback)
        if compiled and torch.cuda.is_available():
            # TrainingArguments set only torch's new switch of TF32; torch.compile refuses to read the old one until
            # both agree.
            torch.set_float32_matmul_precision("high")

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many, from the end of one step to the end of another."""
        self.clock.first, self.clock.last = self.untimed, self.untimed + steps
        self.trainer.train()
        return (self.clock.ended - self.clock.begun) / steps


def arguments(task: Task, compiled: bool, folder: Path) -> transformers.TrainingArguments:
    """The paper's settings; what the authors' scripts leave at its default; nothing but training."""
    settings, cuda = task.settings, torch.cuda.is_available()
    return transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=settings.steps,
        per_device_train_batch_size=task.load.micro_batch_size,
        gradient_accumulation_steps=settings.batch_size // task.load.micro_batch_size,
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
        dataloader_num_workers=task.protocol.workers,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,  # it would wait for each loss
        report_to="none",
        disable_tqdm=True,
    )


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
        if state.global_step == self.first:
            self.begun = now()
        if state.global_step == self.last:
            self.ended = now()
            control.should_training_stop = True


def now() -> float:
    """Seconds on a clock, once the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def stock_model(size: str, vocabulary_size: int, dropout: float) -> BertForMaskedLM:
    """Hugging Face's own model, with its own initial weights."""
    dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForMaskedLM(BertConfig(vocab_size=vocabulary_size, **vars(SIZES[size]), **dropouts))


def compare(task: Task) -> str:
    """What agrees, in words, and how well; SystemExit if a loss differs. Compiled recipes: the original alone."""
    recipes = task.protocol.recipes
    pairs = [(attention, recipes[0]) for attention in OPERATORS] + [("original", recipe) for recipe in recipes[1:]]
    losses = {pair: losses_of(task, *pair) for pair in pairs}
    for (attention, recipe), (ours, stock) in losses.items():
        if not abs(ours - stock) <= TOLERANCE * stock:
            raise SystemExit(
                f"{task.size}, {attention}, {recipe}: the contestants do not compute the same: loss {ours} in this "
                f"project, {stock} in the stock model with the same weights on the same batch"
            )
    worst = max(abs(ours - stock) / stock for ours, stock in losses.values())
    return (
        f"{task.size}: without dropout, in fp32, the loss of each operator equals that of the stock model with its "
        f"weights on the same masked batch ({losses[pairs[0]][1]:.4f} for the original; largest difference {worst:.0e})"
    )


def losses_of(task: Task, attention: str, recipe: str) -> tuple[float, float]:
    """Our trainer's loss in its first step, and the stock model's on that batch, labelled densely."""
    changes = {"batch_size": COMPARED, "dropout": 0.0, "precision": "fp32", "recipe": recipe}
    trainer = Trainer(Run(task.size, attention, 1), replace(task.settings, **changes), task.manifest)
    if attention == "original":
        stock = stock_model(task.size, trainer.model.config.vocab_size, 0.0)
        stock.load_state_dict(trainer.model.state_dict())
    else:
        stock = fold(trainer.model)
    batch = trainer.task.training_batch(0).to(trainer.device)
    labels = torch.full_like(batch.input_ids, IGNORED).flatten()
    labels[batch.positions] = batch.targets
    with torch.no_grad():
        outputs = stock.to(trainer.device).eval()(batch.input_ids, labels=labels.view_as(batch.input_ids))
    return trainer.step(0).loss, outputs.loss.item()


def measure_peak(device: torch.device, precision: str) -> float:
    """FLOP/s of a dense square product, best of five: what MFU is a share of."""
    size = 8192 if device.type == "cuda" else 1024  # bound by arithmetic, a fraction of a second
    generator = torch.Generator(device).manual_seed(0)  # zeros would run faster; the training's generator is not moved
    matrix = torch.randn(size, size, generator=generator, device=device, dtype=AUTOCAST.get(precision))
    seconds = []
    for _ in range(1 + 5):
        begun = now()
        matrix @ matrix
        seconds.append(now() - begun)
    return 2 * size**3 / min(seconds[1:])


def write_corpus(folder: Path, rows: int, tokens: int, vocabulary_size: int) -> Path:
    """A packed corpus of made-up rows in the format of `pack`; returns the manifest. Equal arguments: equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = ["[PAD]", *(f"[unused{number}]" for number in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"piece{number}" for number in range(vocabulary_size - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    special = {name: pieces.index(piece) for name, piece in SPECIAL_TOKENS.items()}
    generator = np.random.default_rng(1)
    shards = []
    for split, count in (("train", rows), ("validation", VALIDATION_ROWS)):
        path = folder / f"{split}-00000.npy"
        np.save(path, _stream(generator, count * tokens, vocabulary_size, special).reshape(count, tokens))
        shards.append({"file": path.name, "split": split, "rows": count, "sha256": sha256_of(path)})
    manifest = {
        "sequence_length": tokens,
        "vocabulary_size": vocabulary_size,
        "vocabulary_sha256": sha256_of(folder / "vocab.txt"),
        "special_tokens": special,
        "rows": {"train": rows, "validation": VALIDATION_ROWS},
        "shards": shards,
    }
    (folder / "manifest.json").write_text(json.dumps({**manifest, "hash": hash_of_corpus(manifest)}))
    return folder / "manifest.json"


def _stream(generator: np.random.Generator, length: int, vocabulary_size: int, special: dict[str, int]) -> np.ndarray:
    """Documents of words as frequent as Zipf says, each between [CLS] and [SEP], as one stream of ids."""
    words = np.arange(max(special.values()) + 1, vocabulary_size)
    frequency = 1 / np.arange(1, len(words) + 1)
    stream = generator.choice(words, length, p=frequency / frequency.sum()).astype(np.uint16)
    starts = np.flatnonzero(generator.random(length) < 1 / DOCUMENT)
    stream[starts], stream[starts - 1] = special["cls"], special["sep"]
    return stream


if __name__ == "__main__":
    main()
