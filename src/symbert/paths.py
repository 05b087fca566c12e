"""Where results lie: a folder's name ends in a key of all that determines its content.

    results/published/{repository-KEY}/…                   files of the hub, where the source is the hub
    results/corpus/{parts-KEY}/{part}.npy, .json, …        token ids of a part's kept documents, and counts
    results/corpus/{shards-KEY}/manifest.json              packed rows
    results/corpus/{text-KEY}/manifest.json                rows of a small text of a sweep
    results/runs/{architecture}/{model}/seed-{seed}/done.json   a pre-training; {model} is a size, an operator and a KEY
    results/runs/{architecture}/{model}/seed-{seed}/step-{step}/   a checkpoint, as a Hugging Face folder
    results/tuned/{rates-KEY}/rates.json                   learning rates that were chosen for the points of a grid
    results/together/{model}/ended.json                    how runs ended that were trained as one model
    results/models/{model}/settings.json                   a model from elsewhere; {model} is its name and a KEY
    results/tasks/{rows}/{task}.parquet                    token ids of a task
    results/scores/{suite}/{architecture}/{model}/seed-{seed}/step-{step}/{selection}.json   scores of tasks, seeds
    results/scores/{suite}/models/{model}/{selection}.json     the same of a model from elsewhere
    results/robustness/…                                   the same models on noise and out-of-domain sets
    results/measured/…-KEY.…                               speeds, anatomy
    results/{experiment}/experiment.json                   the paths of its report; config.yaml has its configuration

A folder with a key has the settings behind the key in settings.json, a run in run.json. Imports no torch.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.architectures import ENCODER
from symbert.files import hash_of
from symbert.steps import RESULTS

PART = f"{RESULTS}/published/{{repository}}/en_meta/{{part}}.jsonl.zst"
DATASET_FILE = f"{RESULTS}/published/dataset--{{repository}}/{{file}}"  # of the hub, read as a part
RUN = f"{RESULTS}/runs/{{architecture}}/{{model}}/seed-{{seed}}"
CHECKPOINT = f"{RUN}/step-{{step}}"
SCORED = "{architecture}/{model}/seed-{seed}/step-{step}"  # in a folder of scores those of a checkpoint
SCORES = f"{RESULTS}/scores/{{suite}}/{SCORED}/{{selection}}.json"
ROBUSTNESS = SCORES.replace("/scores/", "/robustness/")
OF_MODEL = "models/{model}"  # in a folder of scores those of a model from elsewhere
SCORES_OF_MODEL = f"{RESULTS}/scores/{{suite}}/{OF_MODEL}/{{selection}}.json"
ROBUSTNESS_OF_MODEL = SCORES_OF_MODEL.replace("/scores/", "/robustness/")
CHECKPOINT_FILES = ("config.json", "model.safetensors", "README.md")
REPORTED = "report/experiment-{key}.json"  # in an experiment's folder: the record that its page was made of
CHECKSUM = "model.sha256"  # beside extracted weights; no output of a rule
TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", TOKENIZER_CONFIG)
VARIANT = tuple[tuple[str, Any], ...]  # values of swept keys


def key(*facts: Any) -> str:
    """Eight hexadecimal digits of the SHA-256 of facts as canonical JSON."""
    return hash_of(*facts)[:8]


def extracted_again(checkpoint: Path) -> str:
    """The remedy for a missing or damaged file of a checkpoint: the command that makes all of them, in the folder with
    results/, where a finished run beside it can; who made another checkpoint is not known."""
    run, step = checkpoint.parent, checkpoint.name.removeprefix("step-")
    if (run / "done.json").is_file() and step.isdecimal():
        return f"make its files again: symbert extract {shlex.quote(str(run))} {step}"
    return "get it again, or give another checkpoint"


@dataclass(frozen=True)
class Run:
    """The place of a pre-training in an experiment, by its axes."""

    size: str
    attention: str
    pretrain_seed: int
    architecture: str = ENCODER
    variant: VARIANT = ()

    def __str__(self) -> str:
        architecture = "" if self.architecture == ENCODER else f"{self.architecture} "
        variant = "".join(f" {key}={value}" for key, value in self.variant)
        return f"{architecture}{self.size}-{self.attention}{variant} seed {self.pretrain_seed}"
