"""An experiment: where each of its results lies, which settings are behind each key, and what each job reads.

The rules of the workflow, `plan`, `status` and the report look these up; nothing else makes a path. Imports no torch.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import yaml
from msgspec import structs, to_builtins

from symbert.architectures import ARCHITECTURES, ENCODER
from symbert.configuration import (
    Configuration,
    Dataset,
    GlueSettings,
    Model,
    PairLimits,
    PretrainSettings,
    ReportSettings,
    Stage,
    TaskLimits,
    custom_texts,
    experiment_name,
    filter_of,
    finetuned_pretrain_seeds,
    init_from,
    minimal_pair_seeds,
    parts_of,
    protocol_of,
    report_of,
    robustness_of,
    root_of,
    root_of_sets,
    source_of,
    stages_of,
    training_of,
    tuning_of,
)
from symbert.corpus.blocklist import BuildBlocklist
from symbert.corpus.dataset import CARDS, Reading, hub_dataset, is_of_hub, local_dataset
from symbert.corpus.parts import PrepareParts
from symbert.corpus.published import Repository, TextRepository, Ut1
from symbert.corpus.shards import Pack
from symbert.corpus.texts import WriteText, read_of
from symbert.errors import ConfigError
from symbert.experiment import models
from symbert.experiment.sweep import Grid, Values, grids_of, packed_as, report_of_grids, text_of, variant_of
from symbert.files import hash_of, known_sha256, known_sha256s, read_json_or_empty, write_json, write_text
from symbert.foreign import ForeignModel
from symbert.glue.challenges import challenges_for
from symbert.glue.prepare import PreparePairs, PrepareRobustness, PrepareTasks
from symbert.glue.score import Finetune, MinimalPairs, Robustness, kept_at
from symbert.glue.tasks import SUITES, CustomRows, Suite, tasks_of_suite
from symbert.operators import operators_of
from symbert.paths import (
    CHECKPOINT_FILES,
    OF_MODEL,
    REPORTED,
    RUN,
    SCORED,
    VARIANT,
    Run,
    key,
)
from symbert.pretrain.anatomy import MeasureAnatomy
from symbert.pretrain.run import (
    Continuation,
    Pretraining,
    PretrainTogether,
    continuation_of,
    finished_runs,
    has_begun,
    weights_file,
    why_alone,
)
from symbert.pretrain.speeds import MeasureSpeeds
from symbert.pretrain.start import refuse_other_model, refuse_other_vocabulary, weights_sha256
from symbert.pretrain.tuning import Choice, ChooseRates, has_diverged, read_rates
from symbert.sizes import WEIGHTS_FOR_A_GPU, Shape, shapes_of
from symbert.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    DATASET,
    EMBEDDED,
    HARMFUL_MODEL,
    OF_USERS,
    VOCABULARY,
    Config,
    PublishedFile,
    check_directory,
    file_of,
    located,
    name_of_text,
    part_file,
)
from symbert.steps import RESULTS, AnyStep, File, without_paths

BYTES_OF_A_PARAMETER = 16  # its value, gradient and two moments
CONFIGURATION = "config.yaml"  # in the folder of an experiment: all keys, as Snakemake's --configfile takes them


AnyRows = TypeVar("AnyRows", PrepareTasks, PrepareRobustness, PreparePairs)
Scoring = Finetune | Robustness | MinimalPairs


@dataclass(frozen=True)
class Score:
    """What a file of scores holds: a checkpoint's scores of some tasks, with these fine-tuning seeds."""

    run: Run | ForeignModel
    step: int | None  # none of a model from elsewhere
    scoring: Scoring
    tasks: list[str]
    seeds: list[int]  # none of minimal pairs
    checkpoint: str  # its folder
    folder: str  # of the file, and of what stays of each fine-tuning
    trained: str = ""  # of robustness: the same of the fine-tuning

    @property
    def file(self) -> str:
        """Its name says the tasks and seeds, in whatever order they are configured."""
        tasks, seeds = sorted(self.tasks), self.seeds
        return f"{self.folder}/{f'{len(tasks)}x{len(seeds)}-{key(tasks, seeds)}' if seeds else 'pairs'}.json"

    @property
    def weights(self) -> list[str]:
        """The files of the checkpoint, which the job reads."""
        of_run = [f"{self.checkpoint}/{file}" for file in CHECKPOINT_FILES]
        return self.run.reads() if isinstance(self.run, ForeignModel) else of_run

    @property
    def options(self) -> list[str]:
        """The options of the job, in whatever order tasks and seeds are configured."""
        read = ["--settings", self.scoring.folder, "--checkpoint", self.checkpoint]
        read += ["--trained", self.trained] if self.trained else []
        return [*read, "--tasks", *sorted(self.tasks), "--seeds", *map(str, self.seeds)] if self.seeds else read


class Experiment:
    """A checked configuration, as axes and as paths from the folder where Snakemake is run.

    ConfigError where a folder of the same key exists with other settings, and where imported scores have its name.
    """

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.name = experiment_name(config)
        self.folder = f"{RESULTS}/{self.name}"
        if "origin" in read_json_or_empty(Path(self.folder, "experiment.json")).get("inputs", {}):
            raise ConfigError(
                f"{self.folder}: has imported scores; choose another 'experiment', or move the folder away"
            )
        self.final: int = config.pretrain.steps  # the last step of pre-training
        self.compared = [0, self.final] if config.sweep.untrained else [self.final]  # the steps of Table 3
        self.tasks: list[str] = config.sweep.tasks  # that every checkpoint is fine-tuned on
        self.shapes, self.operators = shapes_of(config.sizes), operators_of(config.operators)
        self.grids = grids_of(config)  # of a sweep that lists values of other keys; then nothing is fine-tuned

        self.settings: dict[str, Config] = {}  # by file: settings.json of each keyed folder, run.json of each run
        self.inputs_of: dict[str, list[str]] = {}  # of a job, by its output; the text of a part, by the part

        self.equal_texts: list[tuple[str, str]] = []  # of the user's own: two files that are the same part
        self.dataset: Reading | None = None  # how the files of a dataset are read, where that is the corpus
        self.sizes_of: dict[str, int] = {}  # bytes of its files that the hub has
        self.texts = self._texts() if config.sweep.attention else {}  # nothing is read where nothing is pre-trained
        self._starts: dict[str, File] = {}  # checkpoints that trainings begin from, by path
        self._packed: dict[VARIANT, Pack | WriteText] = {}
        # The encoder first; of a tuned grid at each rate, although few of these will be trained with its seeds.
        self.pretrainings = {run: self._run(run) for run in self._pretrainings()}
        self.tuned = [grid for grid in self.grids if grid.tune]
        self.choosing = {grid.name: self._add(self._choice(grid)) for grid in self.tuned}  # of rates
        trained = {run for grid in self.grids for run in (*self.tuning_of(grid), *self.compared_of(grid))}
        self.runs: dict[Run, str] = {  # without those at rates that are not chosen, or not yet
            run: step.folder for run, step in self.pretrainings.items() if run in trained or not self.grids
        }
        self._shapes: dict[str, Shape | ForeignModel] = {  # by the name of a model's folder
            Path(step.folder).parent.name: step.shape for step in self.pretrainings.values()
        }
        self.scorings: list[tuple[Scoring, list[str]]] = [] if self.grids or not self.runs else list(self._scorings())
        self.scores: dict[str, Score] = {}  # by file
        self.kept: dict[str, Score] = {}  # by the file of a selection for weights too, of scores that are there without
        for run in self.runs if self.scorings else ():
            self._score(run)
        self.models = {name: self._model(name, asked) for name, asked in ({} if self.grids else config.models).items()}
        self.needs = self._needs(1)
        self.needs_of_training = self._needs(config.pretrain.processes // config.pretrain.nodes)
        self.together = {Path(step.folder).name: self._add(step) for step in self._together()}
        self.needs_together = self._needs_together()
        measured = {"speeds": self._speeds(), "anatomy": self._anatomy()}
        self.measured = {name: list(files) for name, files in measured.items()}

    @property
    def summary(self) -> str:
        """Its name, and how it is configured."""
        names: dict[Stage, str] = {"corpus": "corpus", "glue": "GLUE"}
        sources = ", ".join(f"{names[stage]} {source_of(self.config, stage)}" for stage in stages_of(self.config))
        return f"{self.name}: scale {self.config.scale}, {sources}{', compiled' if self.config.compile else ''}"

    @property
    def longer_rows(self) -> Iterator[str]:
        """A line where rows of tasks or pairs may be longer than those of pre-training, whose models never saw the
        positions beyond."""
        trained, read = self.config.corpus.pack.sequence_length, {}
        for suite in dict.fromkeys(scoring.suite for scoring, _ in self.scorings):
            key = f"suites.{suite}" if "max_length" in self.config.suites.get(suite, {}) else "glue"
            read[f"'{key}.max_length' ({{}})"] = protocol_of(self.config, suite, PairLimits).max_length
        if longer := [key.format(length) for key, length in read.items() if length > trained]:
            yield (
                f"{', '.join(longer)}: more tokens than 'corpus.pack.sequence_length' ({trained}), so positions that "
                "are not pre-trained; lower the first or raise the last"
            )

    def _add(self, step: AnyStep) -> AnyStep:
        """Plan a step of one job, and note what the job reads."""
        self.inputs_of |= dict.fromkeys(step.paths().values(), step.reads())
        return self._plan(step)

    def _plan(self, step: AnyStep) -> AnyStep:
        """Note a step. ConfigError where its folder has another one: eight digits may be alike."""
        file, settings = step.settings_file, to_builtins(step)
        if Path(file).is_file() and without_paths(read_json_or_empty(Path(file))) != without_paths(settings):
            raise ConfigError(f"{file}: holds other settings under the same key; move its folder away")
        self.settings[file] = settings
        return step

    def _published(self, file: PublishedFile, stage: Stage, revision: str | None = None) -> str:
        """The name of a published file: its path in the mirror, or where the hub's is downloaded, or `embedded:…`."""
        return f"{self._published_folder(file, stage, revision)}/{file.path}"

    def _published_folder(self, file: PublishedFile, stage: Stage, revision: str | None) -> str:
        """The folder of all files of a repository, or of UT1's."""
        if root := root_of(self.config, stage):
            return f"{root}/{file.repository}"
        if file.repo_type == "ut1":
            return self._plan(Ut1(url=self.config.corpus.blocklist_url)).folder
        section = self.config.corpus if stage == "corpus" else self.config.glue
        default = section.revision if file.repo_type == "dataset" else "main"
        return self._plan(
            Repository(repo_type=file.repo_type, repository=file.repository, revision=revision or default)
        ).folder

    # The corpus.

    def _texts(self) -> dict[str, str]:
        """The text of each part, in the order in which documents are taken. A file of the user's own is a part, and its
        SHA-256 is its name and place, so that a file may be renamed, but not to be read as another kind of file."""
        source = source_of(self.config, "corpus")
        if source not in OF_USERS:
            return {part: self._published(part_file(part), "corpus") for part in parts_of(self.config)}
        if source == DATASET and self.config.corpus.dataset:
            named = self._dataset_files(self.config.corpus.dataset)
        else:
            named = sorted(_named(custom_texts(self.config)))
        texts = dict(named)
        self.equal_texts = [(path, texts[name]) for name, path in named if path != texts[name]]
        return texts

    def _dataset_files(self, asked: Dataset) -> list[tuple[str, str]]:
        """The parts and the files of a dataset, in the order in which the library reads them. A part of the hub's is
        named by the commit and the path, another one as a file of the user's own is."""
        if not is_of_hub(asked):
            self.dataset, files = local_dataset(asked)
            return _named(files)
        from symbert.corpus.hub import listed_files  # huggingface_hub takes a moment

        repository = asked.path
        folder = self._plan(TextRepository(repo_type="dataset", repository=repository, revision=asked.revision)).folder
        commit, sizes = listed_files(Path(folder), "dataset", repository, asked.revision, CARDS)
        self.dataset, files = hub_dataset(asked, Path(folder), commit, list(sizes))
        self.sizes_of = {f"{folder}/{file}": sizes[file] for file in files}
        return [(f"hub-{hash_of(repository, commit, file)}", f"{folder}/{file}") for file in files]

    @cached_property
    def vocabulary(self) -> File:
        """The word pieces of the models that are pre-trained."""
        return file_of(self._published(VOCABULARY, "corpus"))

    @cached_property
    def parts(self) -> PrepareParts:
        """The token ids of parts."""
        chosen, is_published = filter_of(self.config), source_of(self.config, "corpus") not in OF_USERS
        files: dict[str, Any] = {"dataset": self.dataset}
        if is_published:
            files["checksums"] = file_of(self._published(CORPUS_CHECKSUMS, "corpus"))
        if chosen.has("categories"):
            archive, listing = (file_of(self._published(file, "corpus")) for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
            files["blocklist"] = self._add(BuildBlocklist(archive=archive, checksums=listing))
        if chosen.annotations == "computed" and chosen.has("perplexity"):
            files["harmful_model"] = file_of(self._published(HARMFUL_MODEL, "corpus"))
        step = PrepareParts(vocabulary=self.vocabulary, filter=chosen, split_by_content=not is_published, **files)
        self._plan(step)
        read = step.reads()
        self.inputs_of |= {step.paths(part=part)["tokens"]: read for part in self.texts}
        self.inputs_of |= {part: [located(text)] for part, text in self.texts.items()}
        return step

    def rows(self, variant: VARIANT) -> Pack | WriteText:
        """The rows of the corpus, or of a small text."""
        if variant not in self._packed:
            if text := text_of(self.config, variant):
                step: Pack | WriteText = WriteText(text=text, read=read_of(text.source))
            else:
                is_published = source_of(self.config, "corpus") not in OF_USERS
                names = len(self.texts) if is_published else list(self.texts)
                step = Pack(parts=self.parts, texts=names, pack=packed_as(self.config, variant))
            self._add(step)
            self._packed[variant] = step
        return self._packed[variant]

    @property
    def shards(self) -> str:
        """The file that describes the rows of the corpus."""
        return self._manifest(())

    def _manifest(self, variant: VARIANT) -> str:
        """The file that describes rows."""
        return self.rows(variant).paths()["manifest"]

    # Pre-training.

    def _pretrainings(self) -> list[Run]:
        sweep = self.config.sweep
        if self.grids:
            runs = ((*self.tuning_of(grid), *self.runs_of_grid(grid)) for grid in self.grids)
            return list(dict.fromkeys(run for of_grid in runs for run in of_grid))
        axes = (sweep.sizes, sweep.attention, sweep.pretrain_seeds)
        return [
            Run(*values, architecture)
            for architecture in ARCHITECTURES
            if architecture in sweep.architectures
            for values in product(*axes)
        ]

    def runs_of_grid(self, grid: Grid) -> list[Run]:
        """The pre-trainings of a grid, point by point, at each rate of which one is chosen, with each seed."""
        return [self._run_at(point, seed) for point in grid.trained_points for seed in grid.seeds]

    def tuning_of(self, grid: Grid) -> list[Run]:
        """The pre-trainings by which the rate of each point is chosen; none of a grid that is not tuned."""
        seeds = sorted(grid.tune.seeds) if grid.tune else []
        return [self._run_at(point, seed) for point in grid.trained_points for seed in seeds]

    def compared_of(self, grid: Grid) -> list[Run]:
        """The pre-trainings that are compared: of a tuned grid those at the common and at the best rate of each point,
        none before rates are chosen."""
        if not grid.tune:
            return self.runs_of_grid(grid)
        choices = self.choices(grid)
        chosen = zip(grid.points, choices, strict=True) if choices else ()
        rates = [(point, rate) for point, choice in chosen for rate in sorted({choice.common, choice.best})]
        return [run for point, rate in rates for run in self._at_rate(grid, point, rate)]

    def may_follow(self, grid: Grid) -> list[Run]:
        """As many pre-trainings as may follow once the rates of a tuned grid are chosen: at two rates of each point, of
        the first operator, whose best rate is the common one, at one; at those of which most are missing."""
        if not grid.tune or self.choices(grid):
            return []

        def finished(runs: list[Run]) -> int:
            return sum(Path(self._folder(run), "done.json").is_file() for run in runs)

        following: list[Run] = []
        for point in grid.points:
            fewest = sorted((self._at_rate(grid, point, rate) for rate in grid.rates), key=finished)
            count = 1 if point["attention"] == grid.axes["attention"][0] else 2
            following += [run for runs in fewest[:count] for run in runs]
        return following

    def _at_rate(self, grid: Grid, point: Values, rate: float) -> list[Run]:
        return [self._run_at({**point, "learning_rate": rate}, seed) for seed in grid.seeds]

    def choices(self, grid: Grid) -> list[Choice]:
        """The rates of each point of a tuned grid; none before they are chosen."""
        file = Path(self.rates_of(grid))
        return read_rates(file) if file.is_file() else []

    def rates_of(self, grid: Grid) -> str:
        """The file of the rates of a tuned grid."""
        return self.choosing[grid.name].paths()["rates"]

    def _run_at(self, point: Values, seed: int) -> Run:
        return Run(point["size"], point["attention"], seed, point["architecture"], variant_of(self.config, point))

    def _choice(self, grid: Grid) -> ChooseRates:
        """The choice of a rate for each point of a tuned grid."""
        assert grid.tune
        rates, seeds = grid.rates, sorted(grid.tune.seeds)
        cells = self.tuning_of(grid)[:: len(rates) * len(seeds)]
        return ChooseRates(
            cells=[self.pretrainings[run] for run in cells],
            rates=rates,
            seeds=seeds,
            by=grid.tune.by,
            escape_loss=self.config.sweep.escape_loss,
        )

    @property
    def encoders(self) -> list[Run]:
        """The pre-trainings that are fine-tuned and compared with the paper."""
        return [run for run in self.runs if run.architecture == ENCODER and not self.grids]

    def _run(self, run: Run) -> Pretraining:
        """A pre-training, and what it and the extraction of its models read."""
        step = Pretraining(
            architecture=run.architecture,
            size=run.size,
            shape=self.shapes[run.size],
            operator=self.operators[run.attention],
            training=self.training(run),
            rows=self.rows(run.variant),
            corpus_source=None if text_of(self.config, run.variant) else source_of(self.config, "corpus"),
            pretrain_seed=run.pretrain_seed,
        )
        if path := init_from(self.config, run.architecture):
            step = structs.replace(step, init_from=self._start(step, path))
        self._add(step)
        self.inputs_of[step.folder] = [located(self.vocabulary.path)]  # to extract models
        return step

    def _together(self) -> Iterator[PretrainTogether]:
        """The runs that one process trains as one model: of one shape, operator, batch size and text, as many at a time
        as are asked for; by their seeds, as those of one seed read the same batches. Runs at a rate that may not be
        chosen are together with those of other seeds alone, which are trained if they are."""
        alike: dict[Any, list[Pretraining]] = {}
        for run, step in self.pretrainings.items():
            if not why_alone(step.training):
                operator = step.operator.path, repr(step.operator.arguments)
                model = step.architecture, step.shape, operator, step.training.batch_size, step.rows.key
                cell = () if run in self.runs else (step.training, step.operator.name)
                alike.setdefault((model, cell), []).append(step)
        count = self.config.pretrain.together
        for steps in alike.values():
            ordered = sorted(steps, key=lambda step: step.pretrain_seed)
            for first in range(0, len(ordered), count):
                if len(some := ordered[first : first + count]) > 1:
                    yield PretrainTogether(runs=some)

    @property
    def trained_alone(self) -> dict[Run, str]:
        """The pre-trainings that `pretrain.together` does not reach, and why."""
        if self.config.pretrain.together == 1:
            return {}
        return {run: why for run, step in self.pretrainings.items() if (why := why_alone(step.training))}

    def _start(self, step: Pretraining, path: str) -> File:
        """The checkpoint that a pre-training begins from. ConfigError or MissingInputError where that is known to fail
        before anything is computed."""
        checkpoint, vocabulary = Path(path), Path(located(self.vocabulary.path))
        check_directory("pretrain.init_from", path, "config.json, weights and vocab.txt")
        if isinstance(step.rows, WriteText):
            raise ConfigError(
                "config: 'sweep.text' has texts with vocabularies of their own, which no checkpoint has; leave it or "
                "'pretrain.init_from' out"
            )
        refuse_other_model(step, checkpoint)
        if path not in self._starts:
            if vocabulary.is_file():
                refuse_other_vocabulary(checkpoint, vocabulary)
            self._starts[path] = File(path, weights_sha256(checkpoint, known_sha256))
        return self._starts[path]

    @cached_property
    def continuations(self) -> dict[Run, Continuation]:
        """What the pre-trainings that have not begun have of finished ones of other steps."""
        runs = [run for run, folder in self.runs.items() if not Path(folder, "done.json").is_file()]
        coming = {run: self.pretrainings[run] for run in runs}
        if not coming:
            return {}
        finished = [*finished_runs(sorted(Path(RESULTS, "runs").glob("*/*/seed-*")))]
        found = {run: continuation_of(step, finished) for run, step in coming.items()}
        return {
            run: continuation
            for run, continuation in found.items()
            if continuation and not has_begun(Path(self.runs[run]), continuation.step or 0)
        }

    def manifest(self, run: Run) -> str:
        """The file that describes the rows that a run learns from."""
        return self._manifest(run.variant)

    def training(self, run: Run) -> PretrainSettings:
        """How a run is trained: as every run of its architecture, but for swept keys."""
        return training_of(self.config, run.architecture, dict(run.variant))

    def checkpoint(self, run: Run, step: int) -> str:
        """The folder of a checkpoint."""
        return f"{self.runs[run]}/step-{step}"

    def curve_steps(self, size: str) -> list[int]:
        """The checkpoints of Figure 3 of a size, the last one among them; none when it is not in the curve."""
        curve = self.config.sweep.curve
        return sorted({*curve.steps.get(size, ()), self.final}) if size in curve.sizes else []

    def steps(self, run: Run, architecture: str = ENCODER) -> list[int]:
        """All checkpoints of a run that are fine-tuned: none of another architecture than the encoder."""
        if (
            self.grids
            or run.architecture != architecture
            or run.pretrain_seed not in finetuned_pretrain_seeds(self.config)
        ):
            return []
        return sorted({*self.compared, *self.curve_steps(run.size)})

    def minimal_pair_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that judge BLiMP's pairs: the last, and those that are fine-tuned, or would be of an
        encoder, as far as the run keeps them."""
        is_asked = "blimp" in self.config.sweep.suites
        if not is_asked or run.pretrain_seed not in minimal_pair_seeds(self.config, run.architecture):
            return []
        training = self.training(run)
        kept = (
            step
            for step in self.steps(run, run.architecture)
            if step < training.steps and not step % training.save_every
        )
        return sorted({*kept, training.steps})

    def extracted_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that become models: those that are scored, and those that the report looks at; of
        another architecture than the encoder, the last one too."""
        if self.grids:
            return []
        is_last_read = run.architecture != ENCODER or self.config.sweep.anatomy
        last = [self.training(run).steps] if is_last_read else []
        return sorted({*self.steps(run), *self.minimal_pair_steps(run), *last})

    # Models from elsewhere.

    def _model(self, name: str, asked: Model) -> ForeignModel:
        """A model from elsewhere, and its scores."""
        if models.is_of_hub(asked):
            repository = Repository(repo_type="model", repository=asked.path, revision=asked.revision)
            model, sizes = models.hub_model(name, asked, self._plan(repository).folder)
            self.sizes_of |= sizes
        else:
            model = models.local_model(name, asked)
        models.refuse_long_rows(model, self.config)
        place, scorings = OF_MODEL.format(model=Path(model.folder).name), list(self._scorings(model))
        if not all(Path(step.settings_file).is_file() for step in (model, *(scoring for scoring, _ in scorings))):
            models.refuse_unreadable(model, {*self.tasks, *self.config.sweep.suites})
        self._plan(model)
        self._shapes[Path(model.folder).name] = model
        self._score_all(model, None, model.folder, place, scorings, self.config.sweep.finetune_seeds)
        return model

    # Tasks and scores.

    def _scorings(self, model: ForeignModel | None = None) -> Iterator[tuple[Scoring, list[str]]]:
        """How checkpoints, or a model from elsewhere, are scored, and on which tasks: on suites, tasks of the user's
        own, noise and other domains, and pairs."""
        custom = self.config.tasks
        for suite in SUITES.values():
            tasks = tasks_of_suite(suite.name, self.tasks)
            if published := [task for task in tasks if task not in custom]:
                yield from self._scorings_of(suite, published, {}, model)
            for task in tasks:
                if task in custom:
                    yield from self._scorings_of(suite, [task], {task: custom[task].digested()}, model)
        if "blimp" in self.config.sweep.suites:
            suite = SUITES["blimp"]
            rows = PreparePairs(
                limits=protocol_of(self.config, suite.name, PairLimits),
                source=self._published_rows(suite),
                vocabulary=None if model else self.vocabulary,
                tokenizer=model.tokenizer if model else None,
            )
            yield self._plan(MinimalPairs(rows=self._rows(rows, [suite.name]))), [suite.name]

    def _scorings_of(
        self, suite: Suite, tasks: list[str], custom: dict[str, CustomRows], model: ForeignModel | None
    ) -> Iterator[tuple[Scoring, list[str]]]:
        """The scorings of tasks that are prepared and fine-tuned together: a suite's, or one task of the user's own."""
        rows = PrepareTasks(
            suite=suite.name,
            limits=protocol_of(self.config, suite.name, TaskLimits),
            vocabulary=None if model else self.vocabulary,
            tokenizer=model.tokenizer if model else None,
            source=None if custom else self._published_rows(suite),
            custom=custom,
        )
        asked = self.config.models[model.name] if model else None
        protocol = protocol_of(self.config, suite.name, GlueSettings, asked)
        tuning = tuning_of(self.config, suite.name, asked)
        trained = self._plan(Finetune(rows=self._rows(rows, tasks), protocol=protocol, tuning=tuning))
        yield trained, tasks
        if measured := [task for task in tasks if task in self._measured_tasks]:
            root = root_of_sets(self.config)
            folder = File(root, known_sha256(root)) if root else None
            sets = PrepareRobustness(clean=rows, chosen=robustness_of(self.config), root=folder)
            yield self._plan(Robustness(rows=self._rows(sets, measured), trained=trained)), measured

    @cached_property
    def _measured_tasks(self) -> list[str]:
        """The tasks whose classifiers are scored on noise or on an out-of-domain set: of GLUE and of the user's own.

        ConfigError when sets are asked for and no task answers any.
        """
        chosen, tasks = self.config.glue.robustness, tasks_of_suite("glue", self.tasks)
        if chosen.noise or not chosen.sets:
            return tasks if chosen.noise else []
        if measured := [task for task in tasks if challenges_for(task, chosen.sets)]:
            return measured
        sets = ", ".join(chosen.sets)
        raise ConfigError(f"config: 'glue.robustness.sets': no task of 'sweep.tasks' answers {sets}; add mnli")

    def _rows(self, rows: AnyRows, tasks: list[str]) -> AnyRows:
        """Note rows of tasks; whichever are asked for, they have one folder."""
        self.inputs_of |= {rows.file(task): rows.reads_for(task) for task in tasks}
        return self._plan(rows)

    def _published_rows(self, suite: Suite) -> File:
        """The folder of the published rows of a suite, at its own commit; of the package's its content counts."""
        repository = PublishedFile("dataset", suite.repository, "")
        name = self._published_folder(repository, "glue", suite.revision or None)
        return File(name, known_sha256(located(name)) if name.startswith(EMBEDDED) else None)

    def _score(self, run: Run) -> None:
        """Ask for the scores of a run's checkpoints."""
        steps = self.steps(run)
        asked = {Finetune: steps, Robustness: [self.final] if steps else [], MinimalPairs: self.minimal_pair_steps(run)}
        for step in sorted({step for of_method in asked.values() for step in of_method}):
            scorings = [(scoring, tasks) for scoring, tasks in self.scorings if step in asked[type(scoring)]]
            names = {
                "architecture": run.architecture,
                "model": Path(self.runs[run]).parent.name,
                "seed": run.pretrain_seed,
                "step": step,
            }
            seeds = self.finetune_seeds(run, step)
            self._score_all(run, step, self.checkpoint(run, step), SCORED.format(**names), scorings, seeds)

    def _score_all(
        self,
        run: Run | ForeignModel,
        step: int | None,
        checkpoint: str,
        place: str,
        scorings: list[tuple[Scoring, list[str]]],
        seeds: list[int],
    ) -> None:
        """Ask for scores of a checkpoint, which lie at a place in the folder of each scoring."""
        tasks_of = {scoring.folder: tasks for scoring, tasks in scorings}

        def score_of(scoring: Scoring, tasks: list[str]) -> Score:
            of_scoring = [] if isinstance(scoring, MinimalPairs) else sorted(seeds)
            return Score(run, step, scoring, tasks, of_scoring, checkpoint, f"{scoring.folder}/{place}")

        for scoring, tasks in scorings:
            score, read = score_of(scoring, tasks), [scoring.rows.file(task) for task in tasks]
            if isinstance(run, ForeignModel):
                read += run.reads()
            if isinstance(scoring, Robustness):
                trained = tasks_of[scoring.trained.folder]
                clean = score_of(scoring.trained, trained)
                read += [*(scoring.trained.rows.file(task) for task in trained), clean.file]
                score = replace(score, trained=clean.folder)
            self.scores[score.file], self.inputs_of[score.file] = score, read
            if self.config.glue.keep_finetuned and isinstance(scoring, Finetune) and step in (self.final, None):
                again = score.file.replace(".json", "-weights.json")
                self.kept[again], self.inputs_of[again] = score, read

    def finetune_seeds(self, run: Run, step: int) -> list[int]:
        """The seeds that the comparison and the curve want of one checkpoint."""
        sweep = self.config.sweep
        final = sweep.finetune_seeds if step in self.compared else []
        curve = sweep.curve.finetune_seeds if step in self.curve_steps(run.size) else []
        return sorted({*final, *curve})

    # Measurements.

    def _speeds(self) -> Iterator[str]:
        """Where the speeds of the operators of each size are measured side by side."""
        first = [run for run in self.encoders if run.pretrain_seed == self.config.sweep.pretrain_seeds[0]]
        for size in dict.fromkeys(run.size for run in first):
            runs = [self.pretrainings[run] for run in first if run.size == size]
            yield self._measured(MeasureSpeeds(runs=runs, micro_batch_size=self.config.pretrain.micro_batch_size))

    def _anatomy(self) -> Iterator[str]:
        """Where the heads of the checkpoints are described."""
        if self.config.sweep.anatomy and not self.grids:
            steps = ((run, step) for run in self.encoders for step in {*self.steps(run), self.final} - {0})
            folders = sorted(self.checkpoint(run, step) for run, step in steps)
            yield self._measured(MeasureAnatomy(checkpoints=folders, rows=self.rows(())))

    def _measured(self, step: MeasureSpeeds | MeasureAnatomy) -> str:
        self._add(step)
        return next(iter(step.paths().values()))

    # What rules ask.

    def reads(self, output: str) -> Callable[[Any], list[str]]:
        """The inputs of a job by its wildcards."""
        return lambda wildcards: self.inputs_of[output.format(**wildcards)]

    def options(self, output: str) -> Callable[[Any], list[str]]:
        """The options of a job that scores, by its wildcards."""
        return lambda wildcards: {**self.scores, **self.kept}[output.format(**wildcards)].options

    def _needs(self, processes: int) -> SimpleNamespace:
        """The resources on a node of a job that computes with a model, by its wildcards: a thread or more and a GPU for
        each process, unless a CPU is as good, and MB of memory, more at each attempt."""

        def shape(wildcards: Any) -> Shape | ForeignModel:
            size = getattr(wildcards, "size", None)
            return self.shapes[size] if size else self._shapes[wildcards.model]

        return SimpleNamespace(
            threads=lambda wildcards: shape(wildcards).threads * processes,
            memory=lambda wildcards, attempt: shape(wildcards).memory * processes * attempt,
            gpus=lambda wildcards: shape(wildcards).needs_gpu * processes,
        )

    def reads_of_training(self, wait: Callable[..., Any]) -> Callable[[Any], list[str]]:
        """The inputs of a pre-training by its wildcards, once it is no longer `wait`ed for: the job that trains it
        together with others, of these wildcards, makes its outputs, but where it failed."""
        batches = {run.folder: step for step in self.together.values() for run in step.runs}

        def reads(wildcards: Any) -> list[str]:
            folder = RUN.format(**wildcards)
            if folder in batches and not Path(folder, "done.json").is_file():
                wait(batch=Path(batches[folder].folder).name)
            return self.inputs_of[f"{folder}/done.json"]

        return reads

    def _needs_together(self) -> SimpleNamespace:
        """The resources of a job that trains several runs as one model: a GPU where all of them are worth one."""

        def runs(wildcards: Any) -> list[Pretraining]:
            return self.together[wildcards.batch].runs

        def memory(wildcards: Any, attempt: int) -> int:
            shape, count = runs(wildcards)[0].shape, len(runs(wildcards))
            return (shape.memory + count * BYTES_OF_A_PARAMETER * shape.parameters() // 10**6) * attempt

        def gpus(wildcards: Any) -> int:
            weights = [run.shape.layer_weights for run in runs(wildcards)]
            return int(sum(weights) > WEIGHTS_FOR_A_GPU)

        return SimpleNamespace(threads=lambda wildcards: runs(wildcards)[0].shape.threads, memory=memory, gpus=gpus)

    @property
    def nodes(self) -> dict[str, Any]:
        """Resources of a training over several nodes: our command starts the tasks, a node each, with its GPUs.

        Slurm's plugin starts none (mpi) and derives none from the GPUs (tasks_per_gpu); gres counts per node.
        """
        nodes, gpus = self.config.pretrain.nodes, self.needs_of_training.gpus
        if nodes == 1:
            return {"nodes": 1, "gpu": gpus}
        gres = lambda wildcards: f"gpu:{count}" if (count := gpus(wildcards)) else ""  # noqa: E731
        return {"nodes": nodes, "gpu": 0, "mpi": "srun", "tasks": nodes, "tasks_per_gpu": 0, "gres": gres}

    # The report.

    @cached_property
    def inputs(self) -> Config:
        """The files of the report, by what they hold; `symbert report` reads them by these names."""
        suites = dict.fromkeys(["glue", *(name for name in SUITES if tasks_of_suite(name, self.tasks))])
        inputs = {
            "runs": [self.runs[run] for run in self.runs if run.architecture == ENCODER],
            "runs_of_others": [self.runs[run] for run in self.runs if run.architecture != ENCODER],
            "scores": {suite: self._scores(Finetune, suite, lambda size: self.compared) for suite in suites},
            "curve": {suite: self._scores(Finetune, suite, self.curve_steps) for suite in suites},
            "robustness": self._scores(Robustness, "glue"),
            "blimp": self._scores(MinimalPairs, "blimp"),
            "parts": [self.parts.paths(part=part)["record"] for part in self.texts],
            **({"manifest": self.shards} if self.runs else {}),
            **({"models": [model.settings_file for model in self.models.values()]} if self.models else {}),
            **self.measured,
        }
        if self.grids:  # whose runs differ in more than size, operator and seed
            inputs |= {"runs": [], "runs_of_others": [], "parts": []}
            del inputs["manifest"]
            runs = {grid.name: self.runs_of_grid(grid) for grid in self.grids}
            inputs["grids"] = {name: [*map(self._folder, of_grid)] for name, of_grid in runs.items()}
            if self.tuned:
                inputs["rates"] = {grid.name: self.rates_of(grid) for grid in self.tuned}
                inputs["tuning"] = {grid.name: [*map(self._folder, self.tuning_of(grid))] for grid in self.tuned}
            inputs["manifests"] = {name: [*map(self.manifest, of_grid)] for name, of_grid in runs.items()}
        return inputs

    def _scores(self, method: type[Scoring], suite: str, steps: Callable[[str], list[int]] | None = None) -> list[str]:
        """The files of scores of a method on a suite, at these steps of a size or at all; the user's own tasks stand
        with GLUE."""
        return [
            file
            for file, score in self.scores.items()
            if isinstance(score.scoring, method)
            and score.scoring.suite == suite
            and (steps is None or self._is_at(score, steps))
        ]

    def _is_at(self, score: Score, steps: Callable[[str], list[int]]) -> bool:
        """Whether a score is at these steps of its size; of a model from elsewhere, whether the last is one of them."""
        return self.final in steps("") if isinstance(score.run, ForeignModel) else score.step in steps(score.run.size)

    def _folder(self, run: Run) -> str:
        return self.pretrainings[run].folder

    def chosen_files(self, grid: Grid) -> list[str]:
        """The files that the report waits for once the rates of a tuned grid are chosen."""
        return self._files_of(self.compared_of(grid))

    def once_chosen(self, wait: Callable[..., Any]) -> list[Callable[[Any], list[str]]]:
        """By tuned grid its `chosen_files` as the inputs of a job, once its choice of rates, which has these wildcards,
        is no longer `wait`ed for."""

        def files_of(grid: Grid) -> Callable[[Any], list[str]]:
            def files(wildcards: Any) -> list[str]:
                wait(key=self.choosing[grid.name].key)
                return self.chosen_files(grid)

            return files

        return [files_of(grid) for grid in self.tuned]

    def _files_of(self, runs: Iterable[Run]) -> list[str]:
        folders = map(self._folder, runs)
        return [f"{folder}/{name}" for folder in folders for name in ("done.json", "metrics.jsonl", "timing.json")]

    @property
    def input_files(self) -> list[str]:
        """The files that the report waits for, but for `chosen_files`."""
        swept = (run for grid in self.grids if not grid.tune for run in self.runs_of_grid(grid))
        tried = (run for grid in self.tuned for run in self.tuning_of(grid) if not has_diverged(self._folder(run)))
        known = dict.fromkeys([*swept, *tried] if self.grids else self.runs)
        runs = [*self._files_of(known), *map(self.rates_of, self.tuned)]
        others = [run for run in self.runs if run.architecture != ENCODER]
        weights = [
            f"{self.checkpoint(run, step)}/model.safetensors" for run in others for step in self.extracted_steps(run)
        ]
        manifests = map(self.manifest, self.runs) if self.grids else [self.shards] if self.runs else []
        corpus = [*self.inputs["parts"], *dict.fromkeys(manifests)]
        return [*runs, *self.scores, *weights, *corpus, *(file for files in self.measured.values() for file in files)]

    @property
    def lacking_weights(self) -> dict[str, Score]:
        """The selections for weights of fine-tuned models whose scores are there, from a time without
        `glue.keep_finetuned`."""
        return {file: score for file, score in self.kept.items() if self._lacks_weights(score)}

    def _lacks_weights(self, score: Score) -> bool:
        kept = (kept_at(Path(score.folder), task, seed) for task, seed in product(score.tasks, score.seeds))
        return Path(score.file).is_file() and not all(file.with_suffix(".safetensors").is_file() for file in kept)

    @property
    def everything(self) -> list[str]:
        """The inputs of the report, and a file of every job whose results are not all there yet.

        The target `all` asks for them. Inputs of jobs are `ancient`, because what lies under a key never changes its
        meaning, and Snakemake looks behind such a file only for what a target asks for. Checkpoints and rows of tasks
        may be deleted once their scores are there.
        """
        asked = {**self.scores, **self.lacking_weights}
        missing = [score for file, score in asked.items() if not Path(file).is_file()]
        rows = [score.scoring.rows.file(task) for score in missing for task in score.tasks]
        checkpoints = [file for score in missing for file in score.weights]
        made = [*self.lacking_weights, *checkpoints, *rows]
        chosen = [file for grid in self.tuned for file in self.chosen_files(grid)]
        return list(dict.fromkeys([*self.input_files, *chosen, *map(self.manifest, self.runs), *made]))

    @property
    def lost_steps(self) -> dict[Run, list[int]]:
        """By run the steps whose models are still to be made, and of which no weights are left: of a finished run, or
        of the one that a run to come goes on from, whose weights it takes."""
        measured = [file for files in self.measured.values() for file in files if not Path(file).is_file()]
        needed = {*self.everything, *(read for file in measured for read in self.inputs_of[file])}
        lost: dict[Run, list[int]] = {}
        for run, folder in self.runs.items():
            trained, last = self.trained_in(run)
            for step in self.extracted_steps(run):
                model, kept = f"{folder}/step-{step}/model.safetensors", weights_file(trained / "state", step)
                if 0 < step <= last and model in needed and not Path(model).is_file() and not kept.is_file():
                    lost.setdefault(run, []).append(step)
        return lost

    def trained_in(self, run: Run) -> tuple[Path, int]:
        """The folder of the finished run that has the first steps of a run, which may be its own, and the last of
        these; 0 where it is to be trained from its start, or is being trained."""
        folder, before = Path(self.runs[run]), self.continuations.get(run)
        if (folder / "done.json").is_file():
            return folder, self.training(run).steps
        return (before.folder, before.step) if before and before.step else (folder, 0)

    @cached_property
    def key(self) -> str:
        """The key of the report: of its inputs and of all that it says of the configuration."""
        named = [to_builtins([grid.contrasts for grid in self.grids])] if self.grids else []
        return key(self.inputs, to_builtins(self.report_settings), *named)

    @property
    def reported(self) -> str:
        """The file that is there where the page is of this configuration."""
        return f"{self.folder}/{REPORTED.format(key=self.key)}"

    @property
    def report_settings(self) -> ReportSettings:
        """What the report says of the configuration."""
        return report_of_grids(self.config, self.grids) if self.grids else report_of(self.config)

    @property
    def record(self) -> Config:
        """The content of experiment.json: configuration, key, and the paths of the report."""
        return {
            "experiment": self.name,
            "key": self.key,
            "configuration": to_builtins(self.config),
            "report": to_builtins(self.report_settings),
            "inputs": self.inputs,
            "checkpoints": [self.checkpoint(run, step) for run in self.runs for step in self.extracted_steps(run)],
            "settings": self.settings,
        }

    def write(self) -> None:
        """Write experiment.json, config.yaml, and the settings of keyed folders that have none yet."""
        write_json(Path(self.folder, "experiment.json"), self.record)
        text = yaml.safe_dump(to_builtins(self.config), sort_keys=False, allow_unicode=True)
        write_text(Path(self.folder, CONFIGURATION), f"# snakemake --configfile {self.folder}/{CONFIGURATION}\n{text}")
        for file, settings in self.settings.items():
            if read_json_or_empty(Path(file)) != settings:  # none yet, or a file of the user's was renamed
                write_json(Path(file), settings)


def _named(texts: list[str]) -> list[tuple[str, str]]:
    """Files of the user's own with the names of their parts."""
    return [(name_of_text(path, sha256), path) for path, sha256 in zip(texts, known_sha256s(texts), strict=True)]
