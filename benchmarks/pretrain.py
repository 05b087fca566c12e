"""Pre-training beside the authors' way, Hugging Face's `Trainer`: `make bench-pretrain`.

The Trainer has the stock model, collator and fused AdamW, and neither evaluates, saves nor logs. Both train in this
process, a few steps at a time in turn.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from msgspec.structs import asdict, replace
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling

from benchmarks import harness
from benchmarks.harness import Figure, Round, ratio
from symbert.architectures import ENCODER
from symbert.configuration import GlueSettings, PretrainSettings, training_of, typed
from symbert.corpus.shards import Learned, Manifest, Shard
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.experiment.given import read_yaml
from symbert.files import sha256_of, write_json
from symbert.model.hf import fold
from symbert.operators import OPERATORS as BUILT_IN
from symbert.pretrain.compute import pick_device, resolve_precision
from symbert.pretrain.run import GivenRows, Pretraining
from symbert.pretrain.tasks import move
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "safetensors")
OPERATORS = ("original", "symmetric", "pairwise", "shared")
STOCK = "stock Trainer"
ROWS, VALIDATION_ROWS, TOKENS, VOCABULARY = 8192, 1024, 512, 30_522
COMPARED, TOLERANCE = 4, 1e-5  # sequences of a compared batch; of its loss in fp32
UNTIMED = 1  # steps before the timed ones, each time
PROMISED = {"small": 1.9, "base": 1.25}  # ratio of tokens/s to the Trainer's, on a CPU


class Task(NamedTuple):
    """What both train."""

    size: str
    batch_size: int  # sequences of an optimizer step
    micro_batch_size: int  # sequences computed at a time
    compile: bool  # its peer too
    manifest: Path

    @property
    def settings(self) -> PretrainSettings:
        return settings_of(batch_size=self.batch_size, compile=self.compile)


def run_of(size: str, attention: str, training: PretrainSettings, manifest: Path) -> Pretraining:
    """A run of an encoder on the rows of a manifest."""
    return Pretraining(
        architecture=ENCODER,
        size=size,
        shape=SIZES[size],
        operator=BUILT_IN[attention],
        training=training,
        rows=GivenRows(str(manifest)),
        pretrain_seed=1,
    )


def settings_of(**changes: Any) -> PretrainSettings:
    """The paper's settings of pre-training, with changes."""
    defaults = read_yaml(Path(__file__).parents[1] / "workflow/defaults.yaml")
    return replace(training_of(typed(defaults), ENCODER), **changes)


def main() -> None:
    """Write the rows, compare the losses, measure, and write the page."""
    parser = harness.options_of("bench-pretrain", __doc__, rounds=5)
    parser.add_argument("--sizes", nargs="+", choices=["small", "base"], default=["small", "base"])
    parser.add_argument("--operators", nargs="+", choices=list(BUILT_IN), default=list(OPERATORS))
    parser.add_argument("--batch-size", type=int, default=4, help="sequences of a step; of base half as many")
    parser.add_argument("--micro-batch-size", type=int, default=4, help="sequences at a time; of base half as many")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=3, help="timed, of each contestant in each round")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if torch.cuda.device_count() > 1:
        raise SystemExit(
            f"{torch.cuda.device_count()} GPUs are visible: Trainer would train on all of them, this project on one; "
            "show them one: CUDA_VISIBLE_DEVICES=0 make bench-pretrain"
        )
    torch.set_num_threads(options.threads)
    device = pick_device()
    conditions = [
        harness.machine(),
        harness.versions(*PACKAGES),
        f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}; {resolve_precision('auto', device)}; "
        f"{'compiled' if options.compile else 'not compiled'}; {options.threads} threads; all in one process",
        f"interleaved rounds: {options.rounds}; timed in each: {options.steps} steps after {UNTIMED} not timed",
        f"{STOCK}: no evaluation, saving or logging meanwhile",
    ]
    options.work.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    rounds: list[Round] = [{} for _ in range(options.rounds)]
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        manifest = write_corpus(Path(place).resolve() / "rows", ROWS, TOKENS, VOCABULARY)
        batches = {"small": (options.batch_size, options.micro_batch_size)}
        batches["base"] = tuple(max(sequences // 2, 1) for sequences in batches["small"])
        tasks = [Task(size, *batches[size], options.compile, manifest) for size in options.sizes]
        for task in tasks:  # first: a compiled peer allows the whole process to multiply fp32 in TF32
            conditions.append(compare(task, options.operators))
            harness.progress(conditions[-1])
        for task in tasks:
            figures += measure(task, options.operators, rounds, options.steps, Path(place) / task.size)
    tables = [harness.figure_table(figures, rounds), step_table(rounds, dict(zip(options.sizes, tasks, strict=True)))]
    harness.write_page(options.output, "pre-training", conditions, tables)


def measure(task: Task, operators: Sequence[str], rounds: list[Round], steps: int, folder: Path) -> list[Figure]:
    """Add the seconds of a step of each contestant of a size to the rounds; the figures made of them."""
    stock, ours = f"{task.size}: {STOCK}", {attention: f"{task.size}: {attention}" for attention in operators}
    built = {stock: Authors(task, folder)} | {name: Ours(task, attention) for attention, name in ours.items()}
    for number, measured in enumerate(rounds):
        for name in harness.in_turn(built, number):
            measured[name] = built[name].seconds(steps)
            harness.progress(f"round {number + 1}: {name}: {measured[name]:.3f} s a step")
    promised = None if torch.cuda.is_available() else PROMISED[task.size]
    figures = [
        Figure(f"{task.size}: tokens/s, {attention} / {STOCK}", "×", ratio(stock, name), at_least=promised)
        for attention, name in ours.items()
    ]
    for attention in (each for each in ("symmetric", "pairwise") if {each, "original"} <= ours.keys()):
        slower = ratio(ours[attention], ours["original"])
        figures.append(Figure(f"{task.size}: step time, {attention} / original", "×", slower, at_most=1))
    return figures


def step_table(rounds: Sequence[Round], tasks: dict[str, Task]) -> str:
    """Seconds of a step and tokens per second of each contestant."""
    rows = []
    for name in sorted(rounds[0]):
        seconds, batch = [measured[name] for measured in rounds], tasks[name.partition(": ")[0]].batch_size
        median, span = statistics.median(seconds), f"{min(seconds):.3f}–{max(seconds):.3f}"
        rows.append(f"| {name} | {batch} × {TOKENS} | {median:.3f} | {span} | {batch * TOKENS / median:,.0f} |")
    head = "| contestant | batch | seconds of a step | range over the rounds | tokens/s |"
    return harness.table(head, "|---|---:|---:|---:|---:|", rows)


class Ours:
    """One operator in this project's trainer."""

    def __init__(self, task: Task, attention: str) -> None:
        run, self.completed = run_of(task.size, attention, task.settings, task.manifest), 0
        self.trainer = Trainer(run, micro_batch_size=task.micro_batch_size)

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many."""
        ending = self.completed + UNTIMED + steps
        for number in range(self.completed, self.completed + UNTIMED):
            self.trainer.step(number)
        begun = now()
        for _ in self.trainer.steps(range(self.completed + UNTIMED, ending)):
            self.completed = ending
        return (now() - begun) / steps


class Authors:
    """Hugging Face's `Trainer` on the same rows."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.clock, settings, cuda = Clock(), task.settings, torch.cuda.is_available()
        tokenizer = BertTokenizerFast(str(task.manifest.parent / "vocab.txt"))
        self.trainer = transformers.Trainer(
            stock_model(task.size, len(tokenizer), settings.dropout),
            arguments(
                settings,
                folder,
                max_steps=settings.steps,
                per_device_train_batch_size=task.micro_batch_size,
                gradient_accumulation_steps=settings.batch_size // task.micro_batch_size,
                warmup_steps=settings.warmup_steps,
                adam_beta1=settings.adam_beta1,
                adam_beta2=settings.adam_beta2,
                bf16=cuda,
                use_cpu=not cuda,
                torch_compile=task.compile,
                dataloader_num_workers=8 if cuda else 0,  # the authors' number; on a CPU no core is left for them
                eval_strategy="no",
            ),
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=settings.mask_probability),
            train_dataset=ListedRows(task.manifest),
            callbacks=[self.clock],
        )
        self.trainer.remove_callback(transformers.PrinterCallback)
        # A BERT averages its loss itself. Trainer 5 takes it for a sum over the step's tokens and would multiply the
        # gradient by the micro-batches, before it is clipped (findings/trainer-accumulation.sh); 4.37.2 did not.
        self.trainer.loss_is_scaled_for_ga = False

    def seconds(self, steps: int) -> float:
        """Seconds of a step, over so many, from the end of one step to the end of another."""
        self.clock.last = UNTIMED + steps
        self.trainer.train()
        return (self.clock.ended - self.clock.begun) / steps


def arguments(settings: PretrainSettings | GlueSettings, folder: Path, **own: Any) -> transformers.TrainingArguments:
    """The settings that both stages have, and its own ones; nothing is logged or saved."""
    return transformers.TrainingArguments(
        output_dir=str(folder),
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.gradient_clip,
        optim="adamw_torch_fused",
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,  # it would wait for each loss
        report_to="none",
        disable_tqdm=True,
        **own,
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
    """Times the steps after the UNTIMED ones until `last`, and the evaluations between them; then ends the training."""

    last = 0
    begun = stepped = ended = evaluating = 0.0

    def on_step_end(self, args, state, control, **_) -> None:
        if state.global_step == UNTIMED:
            self.begun = now()
        if state.global_step == self.last:
            self.ended = now()
            control.should_training_stop = True
        self.stepped = time.perf_counter()

    def on_evaluate(self, args, state, control, **_) -> None:
        """Hugging Face's hook, after an evaluation."""
        if UNTIMED <= state.global_step < self.last:
            self.evaluating += time.perf_counter() - self.stepped


def now() -> float:
    """Seconds on a clock, once the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def stock_model(size: str, vocabulary_size: int, dropout: float) -> BertForMaskedLM:
    """Hugging Face's own model, with its own initial weights."""
    dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForMaskedLM(BertConfig(vocab_size=vocabulary_size, **asdict(SIZES[size]), **dropouts))


def compare(task: Task, operators: Sequence[str] = OPERATORS) -> str:
    """What agrees, in words, and how well; SystemExit if a loss differs."""
    losses = {attention: losses_of(task, attention) for attention in operators}
    for attention, (ours, stock) in losses.items():
        if not abs(ours - stock) <= TOLERANCE * stock:
            raise SystemExit(
                f"{task.size}, {attention}, {'compiled' if task.compile else 'not compiled'}: the contestants do not "
                f"compute the same: loss {ours} in this project, {stock} in the stock model with the same weights on "
                "the same batch"
            )
    worst = max(abs(ours - stock) / stock for ours, stock in losses.values())
    return (
        f"{task.size}: without dropout, in fp32, the loss of each operator equals that of the stock model with its "
        f"weights on the same masked batch ({losses[operators[0]][1]:.4f} for {operators[0]}; difference ≤ {worst:.0e})"
    )


def losses_of(task: Task, attention: str) -> tuple[float, float]:
    """Our trainer's loss in its first step, and the stock model's on that batch, labelled densely."""
    settings = replace(task.settings, batch_size=COMPARED, dropout=0.0, precision="fp32")
    trainer = Trainer(run_of(task.size, attention, settings, task.manifest))
    if attention == "original":
        stock = stock_model(task.size, trainer.model.config.vocab_size, 0.0)
        stock.load_state_dict(trainer.model.state_dict())
    else:
        stock = fold(trainer.model)
    batch = move(trainer.task.training_batch(0), trainer.device)
    with torch.no_grad():
        outputs = stock.to(trainer.device).eval()(batch["input_ids"], labels=batch["targets"])
    return trainer.step(0).loss, outputs.loss.item()


def write_corpus(folder: Path, rows: int, tokens: int, vocabulary_size: int) -> Path:
    """A packed corpus of made-up rows in the format of `pack`; returns the manifest. Equal arguments: equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"piece{number}" for number in range(vocabulary_size - len(SPECIAL_TOKENS))]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in (*SPECIAL_TOKENS.values(), *words)))
    generator, shards = np.random.default_rng(1), []
    for split, count in (("train", rows), ("validation", VALIDATION_ROWS)):
        path = folder / f"{split}-00000.npy"
        ranks = len(words) ** generator.random((count, tokens))  # words are as frequent as Zipf says
        np.save(path, (len(SPECIAL_TOKENS) - 1 + ranks).astype(np.uint16))
        shards.append(Shard(path.name, split, count, sha256_of(path)))
    special_tokens = {name: number for number, name in enumerate(SPECIAL_TOKENS)}
    digest, counts = sha256_of(folder / "vocab.txt"), {"train": rows, "validation": VALIDATION_ROWS}
    learned = Learned(tokens, vocabulary_size, digest, special_tokens, counts, shards)
    write_json(folder / "manifest.json", Manifest(**asdict(learned), hash=learned.learned_hash(), unigram_entropy=0.0))
    return folder / "manifest.json"


if __name__ == "__main__":
    main()
