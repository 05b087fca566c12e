"""What an experiment asks for, and where its results lie."""

from functools import cached_property
from itertools import product
from pathlib import Path

from symbert.config import Config, experiment_of, sections, source_of
from symbert.errors import ConfigError, UsageError
from symbert.glue.challenges import challenges_for
from symbert.glue.own_files import identity_of
from symbert.pretrain.run import Run
from symbert.project import read_chosen
from symbert.settings import GlueSettings, PretrainSettings, settings_from
from symbert.sizes import VOCABULARY_SIZE
from symbert.tasks import task_named

RUN = "{size}-{attention}/seed-{seed}"


class Experiment:
    """A checked configuration as axes and paths, the latter from the project's folder.

    Paths that there are many of are patterns with Snakemake's wildcards: {size}, {attention}, {seed}, {step}, {task}.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = experiment_of(config)  # of its folder under results/, and under each of the roots in `storage`
        self.final: int = config["pretrain"]["steps"]  # the last step of pre-training
        self.compared = [0, self.final] if config["sweep"]["untrained"] else [self.final]  # the steps of Table 3
        self.tasks: list[str] = config["sweep"]["tasks"]  # that every checkpoint is fine-tuned on
        self.is_embedded = source_of(config, "corpus") == "embedded"  # the corpus is the stand-in made here

        roots = {kind: f"{root or 'results'}/{self.name}" for kind, root in config["storage"].items()}
        self.results = f"results/{self.name}"
        self.raw = f"{roots['raw']}/corpus/raw"  # downloaded parts
        self.shards = f"{roots['shards']}/corpus/shards"  # packed rows
        self.run = f"{self.results}/pretrain/{RUN}"  # what a pre-training publishes
        self.state = f"{roots['checkpoints']}/pretrain/{RUN}/state"  # what a pre-training works in
        self.checkpoint = f"{self.run}/step-{{step}}"  # an extracted step
        self.finetuned = f"{self.results}/glue/{RUN}/step-{{step}}"  # what fine-tuning makes of a checkpoint
        self.score = f"{self.finetuned}/{{task}}.json"  # a task's scores, a record per fine-tuning seed
        self.robustness = f"{self.finetuned}/robustness/{{task}}.json"  # the same on noise and out-of-domain sets

    @property
    def measured_tasks(self) -> list[str]:
        """The tasks whose classifiers are scored on noise or on an out-of-domain set.

        ConfigError when sets are asked for and no task answers any.
        """
        chosen = self.config["glue"]["robustness"]
        measured = [task for task in self.tasks if chosen["noise"] or challenges_for(task_named(task), chosen["sets"])]
        if chosen["sets"] and not measured:
            sets = ", ".join(chosen["sets"])
            raise ConfigError(f"config: 'glue.robustness.sets': no task of 'sweep.tasks' answers {sets}; add mnli")
        return measured

    @property
    def vocabulary_size(self) -> int:
        """Word pieces: those of the stand-in, or BERT's."""
        return self.config["corpus"]["embedded"]["vocabulary_size"] if self.is_embedded else VOCABULARY_SIZE

    @cached_property
    def pretraining(self) -> PretrainSettings:
        """How every run is trained."""
        return settings_from(self.settings["pretrain"], PretrainSettings, "config")

    @cached_property
    def finetuning(self) -> GlueSettings:
        """How every checkpoint is fine-tuned."""
        return settings_from(self.settings["glue"], GlueSettings, "config")

    @cached_property
    def settings(self) -> dict[str, Config]:
        """What each group of rules reads, by section."""
        return sections(self.config, f"{self.results}/embedded")

    @cached_property
    def models(self) -> dict[str, Config]:
        """What the runs of each size and operator stand for: sections of their own, so that an edited operator trains
        its own runs alone."""
        return {f"model-{run.size}-{run.attention}": run.model for run in self.runs()}

    @cached_property
    def own_tasks(self) -> dict[str, Config]:
        """What the user's own tasks stand for: sections of their own, so that a changed file makes its own scores anew
        alone."""
        rows = map(task_named, self.tasks)
        return {f"task-{task.name}": identity_of(task) for task in rows if task.files}

    def place(self, pattern: str, run: Run, **others: str | int) -> Path:
        """One of the patterns above, of a run; `others` are its step and task."""
        return Path(pattern.format(size=run.size, attention=run.attention, seed=run.pretrain_seed, **others))

    def checkpoints(self) -> list[tuple[Run, int]]:
        """All that is fine-tuned: each run at its steps."""
        return [(run, step) for run in self.runs() for step in self.steps(run.size)]

    def runs(self, sizes: list[str] | None = None) -> list[Run]:
        """The pre-trainings, of these sizes or of all."""
        sweep = self.config["sweep"]
        return [Run(*axes) for axes in product(sizes or sweep["sizes"], sweep["attention"], sweep["pretrain_seeds"])]

    def curve_steps(self, size: str) -> list[int]:
        """The checkpoints of Figure 3 of a size, the last one among them; none when it is not in the curve."""
        curve = self.config["sweep"]["curve"]
        return sorted({*curve["steps"][size], self.final}) if size in curve["sizes"] else []

    def steps(self, size: str) -> list[int]:
        """All checkpoints of a size that are fine-tuned."""
        return sorted({*self.compared, *self.curve_steps(size)})

    def finetune_seeds(self, size: str, step: int) -> list[int]:
        """The seeds that the comparison and the curve want of one checkpoint; those of the comparison for any other."""
        sweep = self.config["sweep"]
        final = sweep["finetune_seeds"] if step in self.compared else []
        curve = sweep["curve"]["finetune_seeds"] if step in self.curve_steps(size) else []
        return sorted({*final, *curve} or sweep["finetune_seeds"])


def read_experiment(scale: str | None, configfile: list[Path] | None, config: list[str] | None) -> Experiment:
    """The experiment of the project in this folder that Snakemake would run with these options.

    UsageError for scores of others, which are no experiment of one's own.
    """
    chosen = read_chosen(Path(), scale, configfile, config)
    if chosen["imported"]:
        raise UsageError(f"config: 'imported' is {chosen['imported']}: of imported scores nothing is run; leave it out")
    return Experiment(chosen)
