"""What an experiment asks for, and where its results lie. Imports no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from symbert.config import (
    Config,
    axes_of,
    experiment_name,
    finetuned_pretrain_seeds,
    is_outdated,
    other_hosts,
    runs_of,
    sections,
    source_of,
    training_of,
)
from symbert.files import sha256_of
from symbert.hosts import ENCODER, HOSTS
from symbert.keys import NUMBERS_TEXT, PARALLEL_FILES, ParallelSettings
from symbert.operators import operator_code, operator_named
from symbert.settings import GlueSettings, MinimalPairSettings, PretrainSettings, TaskSettings, settings_from, values_of
from symbert.sizes import SIZES, VOCABULARY_SIZE
from symbert.sources import DEMO_PIECES, is_stand_in
from symbert.suites import SUITES
from symbert.task import Suite
from symbert.tasks import suite_named, tasks_of_suite

RUN = "{size}-{attention}/seed-{seed}"


@dataclass(frozen=True)
class Run:
    """What identifies a pre-training."""

    size: str
    attention: str
    pretrain_seed: int
    host: str = ENCODER

    @property
    def facts(self) -> dict[str, Any]:
        """What files say of the run; records of an encoder omit the host.

        `host` in files is a machine.
        """
        host = {} if self.host == ENCODER else {"model_host": self.host}
        return {"size": self.size, "attention": self.attention, "pretrain_seed": self.pretrain_seed, **host}

    @property
    def model(self) -> dict[str, Any]:
        """What the names of its operator and size stand for: the operator's code, the class of one's own, the shape."""
        own = operator_named(self.attention).own_definition
        return {"operator_code": operator_code(self.attention), **own, **vars(SIZES[self.size])}

    def __str__(self) -> str:
        host = "" if self.host == ENCODER else f"{self.host} "
        return f"{host}{self.size}-{self.attention} seed {self.pretrain_seed}"


class Experiment:
    """A checked configuration as axes and paths, the latter from the folder where Snakemake is run.

    Paths with many values are patterns with Snakemake's wildcards: {size}, {attention}, {seed}, {step}, {suite} and
    {task}. Those of runs are of the encoder; `of_host` gives those of other hosts.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = experiment_name(config)  # of its folder under results/, and under each of the roots in `storage`
        self.final: int = config["pretrain"]["steps"]  # the last step of pre-training
        self.compared = [0, self.final] if config["sweep"]["untrained"] else [self.final]  # the steps of Table 3
        self.tasks: list[str] = config["sweep"]["tasks"]  # that every checkpoint is fine-tuned on

        roots = {kind: f"{root or 'results'}/{self.name}" for kind, root in config["storage"].items()}
        self.results = f"results/{self.name}"
        self.folders = list(dict.fromkeys([self.results, *roots.values()]))  # of all that the experiment writes
        self.raw = f"{roots['raw']}/corpus/raw"  # downloaded parts
        self.shards = f"{roots['shards']}/corpus/shards"  # packed rows
        self.run = f"{self.results}/pretrain/{RUN}"  # what a pre-training publishes
        self.state = f"{roots['checkpoints']}/pretrain/{RUN}/state"  # what a pre-training works in
        self.checkpoint = f"{self.run}/step-{{step}}"  # an extracted step
        self.finetuned = f"{self.results}/{{suite}}/{RUN}/step-{{step}}"  # what fine-tuning makes of a checkpoint
        self.score = f"{self.finetuned}/{{task}}.json"  # a task's scores, a record per fine-tuning seed
        self.pairs = f"{self.results}/blimp/pairs.parquet"  # minimal pairs, as published
        self.judged = f"{self.results}/blimp/{RUN}/step-{{step}}.json"  # how a checkpoint judges BLiMP's pairs
        # Scores on noise and out-of-domain sets, of GLUE.
        self.robustness = f"{self.results}/glue/{RUN}/step-{{step}}/robustness/{{task}}.json"

    @cached_property
    def extended(self) -> "Experiment | None":
        """The folders of the experiment that `extends` names, with this configuration: what in them agrees with it is
        read there and not made again. Nothing is ever written there."""
        name = self.config["extends"]
        return Experiment({**self.config, "experiment": name, "extends": None}) if name else None

    def home(self, has: "Callable[[Experiment], bool]") -> "Experiment":
        """The experiment whose folders have something: this one, unless only the one that it extends has it."""
        extended = self.extended
        return extended if extended and not has(self) and has(extended) else self

    @property
    def suites(self) -> list[Suite]:
        """The suites that every checkpoint is fine-tuned on, the user's own tasks with GLUE."""
        return [suite for suite in SUITES.values() if tasks_of_suite(suite.name, self.tasks)]

    @property
    def vocabulary_size(self) -> int:
        """Word pieces: those of the stand-in, or BERT's."""
        return DEMO_PIECES if is_stand_in(source_of(self.config, "corpus")) else VOCABULARY_SIZE

    @cached_property
    def pretraining(self) -> PretrainSettings:
        """How every run of the encoder is trained."""
        return self.training(ENCODER)

    def training(self, host: str) -> PretrainSettings:
        """How every run of a host is trained."""
        return training_of(self.config, host)

    def last_step(self, host: str) -> int:
        """The last step of every run of a host."""
        return self.training(host).steps

    def finetuning(self, task: str) -> GlueSettings:
        """How every checkpoint is fine-tuned on a task: as on all of its suite."""
        return settings_from(self.settings[suite_named(task).name], GlueSettings, "config")

    def preparation(self, task: str) -> TaskSettings:
        """How the rows of a task are made: as those of all of its suite."""
        return settings_from(self.settings[suite_named(task).rows_section], TaskSettings, "config")

    @property
    def judging(self) -> MinimalPairSettings:
        """Which of BLiMP's pairs every checkpoint judges."""
        return settings_from(self.settings["blimp"], MinimalPairSettings, "config")

    @cached_property
    def settings(self) -> dict[str, Config]:
        """What each group of rules reads, by section."""
        return sections(self.config)

    @cached_property
    def text(self) -> ParallelSettings:
        """The parallel text, the user's or the stand-in, with the SHA-256 of its files."""
        text = settings_from({**(self.config["parallel"] or NUMBERS_TEXT), "sha256": {}}, ParallelSettings, "config")
        contents = {key: sha256_of(text.path(key), "correct 'parallel'") for key in PARALLEL_FILES}
        return replace(text, sha256=contents)

    @property
    def parallel(self) -> dict[str, Config]:
        """The section of the parallel text; none unless a host translates it."""
        is_read = any(not HOSTS[host].reads_corpus for host in self.config["sweep"]["hosts"])
        return {"parallel": values_of(self.text)} if is_read else {}

    @cached_property
    def models(self) -> dict[str, Config]:
        """What the runs of each size and operator stand for: sections of their own, so that an edited operator trains
        its own runs alone."""
        return {f"model-{run.size}-{run.attention}": run.model for run in self.pretrainings()}

    def agrees(self, *names: str) -> bool:
        """Whether no existing settings file of these sections differs from today's configuration."""
        return not any(is_outdated(f"{self.results}/settings/{name}.json", self.settings[name]) for name in names)

    def place(self, pattern: str, run: Run, **others: str | int) -> Path:
        """One of the patterns above, of a run; `others` are its step and task."""
        pattern = of_host(pattern, run.host)
        return Path(pattern.format(size=run.size, attention=run.attention, seed=run.pretrain_seed, **others))

    def scores(self, run: Run, step: int, task: str) -> Path:
        """The file of a checkpoint's scores on a task."""
        return self.place(self.score, run, step=step, suite=suite_named(task).name, task=task)

    def checkpoints(self) -> list[tuple[Run, int]]:
        """All that is fine-tuned: each run at its steps."""
        return [(run, step) for run in self.runs() for step in self.steps(run)]

    def runs(self, sizes: list[str] | None = None) -> list[Run]:
        """The pre-trainings of the encoder, of these sizes or of all: those that stages after pre-training know."""
        return [Run(*axes) for axes in runs_of(self.config, sizes)]

    def pretrainings(self) -> list[Run]:
        """All pre-trainings, of the encoder first."""
        return [*self.runs(), *self.runs_of_others()]

    @property
    def other_hosts(self) -> list[str]:
        """The hosts beside the encoder."""
        return other_hosts(self.config)

    def runs_of_others(self) -> list[Run]:
        """The pre-trainings of the other hosts."""
        return [Run(*axes, host) for host in self.other_hosts for axes in axes_of(self.config)]

    def curve_steps(self, size: str) -> list[int]:
        """The checkpoints of Figure 3 of a size, the last one among them; none when it is not in the curve."""
        curve = self.config["sweep"]["curve"]
        return sorted({*curve["steps"][size], self.final}) if size in curve["sizes"] else []

    def steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that are fine-tuned."""
        return self._scored_steps(run) if run.host == ENCODER else []

    def _scored_steps(self, run: Run) -> list[int]:
        if run.pretrain_seed not in finetuned_pretrain_seeds(self.config):
            return []
        return sorted({*self.compared, *self.curve_steps(run.size)})

    def extracted_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that become models: those that are scored; of another host than the encoder, the
        last one too."""
        last = [] if run.host == ENCODER else [self.last_step(run.host)]
        return sorted({*self.steps(run), *self.judging_steps(run), *last})

    @property
    def has_judges(self) -> bool:
        """Whether checkpoints judge BLiMP's pairs."""
        return "blimp" in self.config["sweep"]["suites"]

    def judging_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that judge BLiMP's pairs: those that are fine-tuned, or would be of an encoder, and
        the last."""
        if not (self.has_judges and HOSTS[run.host].has_likelihoods):
            return []
        training = self.training(run.host)
        kept = [step for step in self._scored_steps(run) if step < training.steps and step % training.save_every == 0]
        return sorted({*kept, training.steps})

    def finetune_seeds(self, size: str, step: int) -> list[int]:
        """The seeds that the comparison and the curve want of one checkpoint; those of the comparison for any other."""
        sweep = self.config["sweep"]
        final = sweep["finetune_seeds"] if step in self.compared else []
        curve = sweep["curve"]["finetune_seeds"] if step in self.curve_steps(size) else []
        return sorted({*final, *curve} or sweep["finetune_seeds"])


def of_host(pattern: str, host: str) -> str:
    """A pattern of runs as that of the runs of a host: those of all but the encoder lie below a folder of its name."""
    return pattern if host == ENCODER else pattern.replace(RUN, f"{host}/{RUN}")
