"""An experiment: where each of its results lies, which settings are behind each key, and what each job reads.

The rules of the workflow, `plan`, `status` and the report look these up; nothing else makes a path. Imports no torch.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from msgspec import to_builtins
from msgspec.structs import asdict

from symbert.configuration import (
    Configuration,
    GlueSettings,
    MinimalPairSettings,
    PretrainSettings,
    ReportFacts,
    Stage,
    TaskSettings,
    experiment_name,
    filter_of,
    finetuned_pretrain_seeds,
    judging_seeds,
    own_texts,
    parts_of,
    protocol_of,
    report_of,
    robustness_of,
    root_of,
    source_of,
    training_of,
    values_of,
)
from symbert.corpus.blocklist import BuildBlocklist
from symbert.corpus.parts import PrepareParts
from symbert.corpus.published import Repository, Ut1
from symbert.corpus.shards import Pack
from symbert.corpus.texts import WriteText, read_of
from symbert.errors import ConfigError
from symbert.experiment.sweep import Grid, grids_of, packed_as, report_of_grids, text_of, variant_of
from symbert.files import known_sha256, read_json_or_empty, write_json, write_text
from symbert.glue.blimp import PARADIGMS, published_pairs
from symbert.glue.challenges import challenges_for
from symbert.glue.tasks import SUITES, Suite, published_split, task_named, tasks_of_suite
from symbert.hosts import ENCODER, HOSTS
from symbert.operators import operators_of
from symbert.paths import (
    CHECKPOINT_FILES,
    REPORTED,
    ROBUSTNESS,
    ROWS,
    SCORES,
    VARIANT,
    Run,
    by_content,
    key,
)
from symbert.pretrain.anatomy import MeasureAnatomy
from symbert.pretrain.run import Pretraining, weights_file
from symbert.pretrain.speeds import MeasureSpeeds
from symbert.sizes import Shape, shapes_of
from symbert.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    EMBEDDED,
    HARMFUL_MODEL,
    OWN_TEXT,
    VOCABULARY,
    Config,
    PublishedFile,
    file_of,
    located,
    name_of_text,
    part_file,
)
from symbert.steps import RESULTS, Step, without_paths

CONFIGURATION = "config.yaml"  # in the folder of an experiment: all keys, as Snakemake's --configfile takes them


@dataclass(frozen=True)
class Scoring:
    """A folder below results/scores or results/robustness: how checkpoints are scored on rows."""

    name: str
    kind: str  # finetune | robustness | judge
    suite: str
    rows: str  # a folder below results/tasks
    tasks: tuple[str, ...]
    trained: "Scoring | None" = None  # of robustness: the fine-tuning


@dataclass(frozen=True)
class Score:
    """What a file of scores holds: a checkpoint's scores of the tasks of a scoring, with these fine-tuning seeds."""

    run: Run
    step: int
    scoring: Scoring
    seeds: list[int]  # none of minimal pairs

    @property
    def options(self) -> list[str]:
        """The request of a job that scores, in whatever order tasks and seeds are configured."""
        return ["--tasks", *sorted(self.scoring.tasks), "--seeds", *map(str, self.seeds)] if self.seeds else []


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
        self.published: set[str] = set()  # names of published files that are read
        self.inputs_of: dict[str, list[str]] = {}  # of a job, by its output; the text of a part, by the part

        self.equal_texts: list[tuple[str, str]] = []  # of the user's own: two files that are the same part
        self.texts = self._texts()
        self.vocabulary = file_of(self._published(VOCABULARY, "corpus"))
        self.parts = self._parts()
        self._packed: dict[VARIANT, Pack | WriteText] = {}
        self.shards = self._manifest(())
        self.pretrainings = {run: self._run(run) for run in self._pretrainings()}  # the encoder first
        self.runs: dict[Run, str] = {run: step.folder for run, step in self.pretrainings.items()}
        self._shapes = {Path(step.folder).parent.name: step.shape for step in self.pretrainings.values()}  # by model
        self.scorings: list[Scoring] = [] if self.grids else list(self._scorings())
        self.scores: dict[str, Score] = {}  # by file
        self.kept: dict[str, Score] = {}  # by the file of a request for weights too, of scores that are there without
        for run in self.runs if self.scorings else ():
            self._score(run)
        self.needs = self._needs(1)
        self.needs_of_training = self._needs(config.pretrain.processes // config.pretrain.nodes)
        measured = {"speeds": self._speeds(), "anatomy": self._anatomy(), "probes": self._probes()}
        self.measured = {name: list(files) for name, files in measured.items()}

    @property
    def summary(self) -> str:
        """Its name, and how it is configured."""
        sources = f"corpus {source_of(self.config, 'corpus')}, GLUE {source_of(self.config, 'glue')}"
        return f"{self.name}: scale {self.config.scale}, {sources}, recipe {self.config.recipe}"

    @property
    def longer_rows(self) -> Iterator[str]:
        """A line where rows of tasks or pairs may be longer than those of pre-training, whose models never saw the
        positions beyond."""
        trained, read = self.config.corpus.pack.sequence_length, {}
        for suite in dict.fromkeys(scoring.suite for scoring in self.scorings):
            key = f"suites.{suite}" if "max_length" in self.config.suites.get(suite, {}) else "glue"
            read[f"'{key}.max_length' ({{}})"] = protocol_of(self.config, suite, MinimalPairSettings).max_length
        if longer := [key.format(length) for key, length in read.items() if length > trained]:
            yield (
                f"{', '.join(longer)}: more tokens than 'corpus.pack.sequence_length' ({trained}), so positions that "
                "are not pre-trained; lower the first or raise the last"
            )

    def _file_of(self, name: str, file: str, settings: Config, reads: list[str]) -> str:
        """A file, made of `reads`, in the keyed folder of its settings."""
        path = f"{self._keyed(name, settings)}/{file}"
        self.inputs_of[path] = reads
        return path

    def _add(self, step: Step) -> None:
        """Plan a step of one job, and note what the job reads."""
        self._keyed(step)
        self.inputs_of[step.paths()[0]] = step.reads()

    def _keyed(self, name: str | Step, settings: Config | None = None) -> str:
        """A folder below results/ whose name ends in the key of a step, or of settings."""
        if isinstance(name, Step):
            self._plan(name.settings_file, to_builtins(name))
            return name.folder
        if EMBEDDED in json.dumps(settings):
            settings = {**settings, "embedded": known_sha256(located(f"{EMBEDDED}/SHA256SUMS"))}
        texts = {name: file for name, file in settings.items() if isinstance(file, str) and file in self.published}
        kept = {name: file for name, file in texts.items() if not file.startswith((f"{EMBEDDED}/", f"{RESULTS}/"))}
        if digests := {name: known_sha256(file) for name, file in kept.items() if Path(file).is_file()}:
            settings = {**settings, "sha256": digests}  # another may take its place
        folder = f"{RESULTS}/{name}-{key(by_content(settings))}"
        self._plan(f"{folder}/settings.json", settings)
        return folder

    def _plan(self, file: str, settings: Config) -> None:
        """Note the settings behind a key. ConfigError where the file has others: eight digits may be alike."""
        if Path(file).is_file() and _content(read_json_or_empty(Path(file))) != _content(settings):
            raise ConfigError(f"{file}: holds other settings under the same key; move its folder away")
        self.settings[file] = settings

    def _published(self, file: PublishedFile, stage: Stage, revision: str | None = None) -> str:
        """The name of a published file: its path in the mirror, or where the hub's is downloaded, or `embedded:…`."""
        name = f"{self._published_folder(file, stage, revision)}/{file.path}"
        self.published.add(name)
        return name

    def _published_folder(self, file: PublishedFile, stage: Stage, revision: str | None) -> str:
        """The folder of all files of a repository, or of UT1's."""
        if root := root_of(self.config, stage):
            return f"{root}/{file.repository}"
        if file.kind == "ut1":
            return self._keyed(Ut1(url=self.config.corpus.blocklist_url))
        section = self.config.corpus if stage == "corpus" else self.config.glue
        default = section.revision if file.kind == "dataset" else "main"
        return self._keyed(Repository(kind=file.kind, repository=file.repository, revision=revision or default))

    # The corpus.

    def _texts(self) -> dict[str, str]:
        """The text of each part, in the order in which documents are taken. A file of the user's own is a part, and its
        SHA-256 is its name and place, so that a file may be renamed, but not to be read as another kind of file."""
        if source_of(self.config, "corpus") != OWN_TEXT:
            return {part: self._published(part_file(part), "corpus") for part in parts_of(self.config)}
        named = sorted((name_of_text(path), path) for path in own_texts(self.config))
        texts = dict(named)
        self.equal_texts = [(path, texts[name]) for name, path in named if path != texts[name]]
        return texts

    def _parts(self) -> PrepareParts:
        """The token ids of parts."""
        chosen, is_published = filter_of(self.config), source_of(self.config, "corpus") != OWN_TEXT
        files: dict[str, Any] = {}
        if is_published:
            files["checksums"] = file_of(self._published(CORPUS_CHECKSUMS, "corpus"))
        if chosen.has("categories"):
            archive, listing = (file_of(self._published(file, "corpus")) for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
            files["blocklist"] = BuildBlocklist(archive=archive, checksums=listing)
            self._add(files["blocklist"])
        if chosen.annotations == "computed" and chosen.has("perplexity"):
            files["harmful_model"] = file_of(self._published(HARMFUL_MODEL, "corpus"))
        step = PrepareParts(vocabulary=self.vocabulary, filter=chosen, split_by_content=not is_published, **files)
        self._keyed(step)
        read = step.reads()
        self.inputs_of |= {step.paths(part=part)[0]: read for part in self.texts}
        self.inputs_of |= {part: [located(text)] for part, text in self.texts.items()}
        return step

    def rows(self, variant: VARIANT) -> Pack | WriteText:
        """The rows of the corpus, or of a small text."""
        if variant not in self._packed:
            if text := text_of(self.config, variant):
                step: Pack | WriteText = WriteText(text=text, read=read_of(text.source))
            else:
                is_published = source_of(self.config, "corpus") != OWN_TEXT
                names = len(self.texts) if is_published else list(self.texts)
                step = Pack(parts=self.parts, texts=names, pack=packed_as(self.config, variant))
            self._add(step)
            self._packed[variant] = step
        return self._packed[variant]

    def _manifest(self, variant: VARIANT) -> str:
        """The file that describes rows."""
        return self.rows(variant).paths()[0]

    # Pre-training.

    def _pretrainings(self) -> list[Run]:
        sweep = self.config.sweep
        if self.grids:
            return list(dict.fromkeys(run for grid in self.grids for run in self.runs_of_grid(grid)))
        axes = (sweep.sizes, sweep.attention, sweep.pretrain_seeds)
        return [Run(*values, host) for host in HOSTS if host in sweep.hosts for values in product(*axes)]

    def runs_of_grid(self, grid: Grid) -> list[Run]:
        """The pre-trainings of a grid, point by point, with each seed."""
        variants = [(point, variant_of(self.config, point), seed) for point in grid.points for seed in grid.seeds]
        return [
            Run(point["size"], point["attention"], seed, point["host"], variant) for point, variant, seed in variants
        ]

    @property
    def encoders(self) -> list[Run]:
        """The pre-trainings that are fine-tuned and compared with the paper."""
        return [run for run in self.runs if run.host == ENCODER and not self.grids]

    def _run(self, run: Run) -> Pretraining:
        """A pre-training, and what it and the extraction of its models read."""
        step = Pretraining(
            host=run.host,
            size=run.size,
            shape=self.shapes[run.size],
            operator=self.operators[run.attention],
            training=self.training(run),
            rows=self.rows(run.variant),
            corpus_source=None if text_of(self.config, run.variant) else source_of(self.config, "corpus"),
            pretrain_seed=run.pretrain_seed,
        )
        self._add(step)
        self.inputs_of[step.folder] = [located(self.vocabulary.path)]  # to extract models
        return step

    def manifest(self, run: Run) -> str:
        """The file that describes the rows that a run learns from."""
        return self._manifest(run.variant)

    def training(self, run: Run) -> PretrainSettings:
        """How a run is trained: as every run of its host, but for swept keys."""
        return training_of(self.config, run.host, dict(run.variant))

    def checkpoint(self, run: Run, step: int) -> str:
        """The folder of a checkpoint."""
        return f"{self.runs[run]}/step-{step}"

    def curve_steps(self, size: str) -> list[int]:
        """The checkpoints of Figure 3 of a size, the last one among them; none when it is not in the curve."""
        curve = self.config.sweep.curve
        return sorted({*curve.steps.get(size, ()), self.final}) if size in curve.sizes else []

    def steps(self, run: Run, host: str = ENCODER) -> list[int]:
        """All checkpoints of a run that are fine-tuned: none of another host than the encoder."""
        if self.grids or run.host != host or run.pretrain_seed not in finetuned_pretrain_seeds(self.config):
            return []
        return sorted({*self.compared, *self.curve_steps(run.size)})

    def judging_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that judge BLiMP's pairs: the last, and those that are fine-tuned, or would be of an
        encoder, as far as the run keeps them."""
        is_asked = "blimp" in self.config.sweep.suites
        if not is_asked or run.pretrain_seed not in judging_seeds(self.config, run.host):
            return []
        training = self.training(run)
        kept = (step for step in self.steps(run, run.host) if step < training.steps and not step % training.save_every)
        return sorted({*kept, training.steps})

    def extracted_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that become models: those that are scored, and those that the report looks at; of
        another host than the encoder, the last one too."""
        if self.grids:
            return []
        is_last_read = run.host != ENCODER or self.config.sweep.anatomy
        last = [self.training(run).steps] if is_last_read else []
        return sorted({*self.steps(run), *self.judging_steps(run), *last})

    # Tasks and scores.

    def _scorings(self) -> Iterator[Scoring]:
        """How checkpoints are scored: on suites, tasks of the user's own, noise and other domains, and pairs."""
        for suite in SUITES.values():
            tasks = tasks_of_suite(suite.name, self.tasks)
            own = {task: [task] for task in tasks if task_named(task).files}
            for name, members in {suite.name: [task for task in tasks if task not in own], **own}.items():
                if members:
                    yield from self._scorings_of(name, suite, members)
        if "blimp" in self.config.sweep.suites:
            files = [self._task_file(published_pairs(paradigm)) for paradigm in PARADIGMS]
            protocol = self._preparation("blimp", MinimalPairSettings)
            rows = self._rows(
                "blimp", {"kind": "pairs", **protocol, "vocabulary": self.vocabulary.path}, {"blimp": files}
            )
            yield self._scoring("blimp", "judge", "blimp", rows, ["blimp"], protocol=protocol)

    def _scorings_of(self, name: str, suite: Suite, tasks: list[str]) -> Iterator[Scoring]:
        """The scorings of tasks that are prepared and fine-tuned together: a suite's, or one task of the user's own."""
        prepared = self._preparation(suite.name, TaskSettings)
        settings = {"kind": "tasks", **prepared, "vocabulary": self.vocabulary.path}
        if own := {task: files for task in tasks if (files := task_named(task).files)}:
            digests = {task: {split: known_sha256(path) for split, path in own[task].items()} for task in own}
            settings["own"] = {task: {**asdict(self.config.tasks[task]), "sha256": digests[task]} for task in own}
        files = {task: self.files_of(task) for task in tasks}
        rows = self._rows(name, settings, files)
        protocol = values_of(protocol_of(self.config, suite.name, GlueSettings))
        trained = self._scoring(name, "finetune", suite.name, rows, tasks, protocol=protocol)
        yield trained
        if measured := [task for task in tasks if task in self._measured_tasks]:
            robustness = robustness_of(self.config)
            settings = {**settings, "kind": "robustness", "robustness": values_of(robustness)}
            if robustness.root:
                settings["other_domains"] = known_sha256(robustness.root)
            rows = self._rows(f"{name}-robustness", settings, {task: files[task] for task in measured})
            scoring = self._scoring(name, "robustness", suite.name, rows, measured, trained=trained.name)
            yield replace(scoring, trained=trained)

    @cached_property
    def _measured_tasks(self) -> list[str]:
        """The tasks whose classifiers are scored on noise or on an out-of-domain set: of GLUE and of the user's own.

        ConfigError when sets are asked for and no task answers any.
        """
        chosen, tasks = self.config.glue.robustness, tasks_of_suite("glue", self.tasks)
        if chosen.noise or not chosen.sets:
            return tasks if chosen.noise else []
        if measured := [task for task in tasks if challenges_for(task_named(task), chosen.sets)]:
            return measured
        sets = ", ".join(chosen.sets)
        raise ConfigError(f"config: 'glue.robustness.sets': no task of 'sweep.tasks' answers {sets}; add mnli")

    def _preparation(self, suite: str, kind: type[TaskSettings | MinimalPairSettings]) -> Config:
        """How texts of a suite become token ids; `allow_partial` changes no row."""
        values = values_of(protocol_of(self.config, suite, kind))
        return {key: value for key, value in values.items() if key != "allow_partial"}

    def _rows(self, name: str, settings: Config, files: dict[str, list[str]]) -> str:
        """A folder below results/tasks; its key holds where the rows come from, whatever tasks are chosen: the folder
        with published files; of the user's own tasks the content counts."""
        if suite := SUITES.get(name.removesuffix("-robustness")):
            repository = PublishedFile("dataset", suite.repository, "")
            settings = {**settings, "source": self._published_folder(repository, "glue", suite.revision or None)}
        rows = Path(self._keyed(f"tasks/{name}", settings)).name
        for task, names in files.items():
            self.inputs_of[ROWS.format(rows=rows, task=task)] = [*map(located, names), located(self.vocabulary.path)]
        return rows

    def files_of(self, task: str) -> list[str]:
        """The files of a task's splits: the user's own, or the published ones."""
        row = task_named(task)
        return [row.files.get(split) or self._task_file(published_split(row, split)) for split in row.splits]

    def _task_file(self, file: PublishedFile) -> str:
        """A published file of a suite, at the suite's own commit."""
        suite = next(suite for suite in SUITES.values() if suite.repository == file.repository)
        return self._published(file, "glue", suite.revision or None)

    def _scoring(self, name: str, kind: str, suite: str, rows: str, tasks: list[str], **how: Any) -> Scoring:
        """A folder of scores; its key holds the protocol, or of robustness the folder of the fine-tuning."""
        above = "robustness" if kind == "robustness" else "scores"
        folder = self._keyed(f"{above}/{name}", {"kind": kind, "suite": suite, "rows": rows, **how})
        return Scoring(Path(folder).name, kind, suite, rows, tuple(tasks))

    def _score(self, run: Run) -> None:
        """Ask for the scores of a run's checkpoints."""
        steps = self.steps(run)
        asked = {"finetune": steps, "robustness": [self.final] if steps else [], "judge": self.judging_steps(run)}
        for step in sorted({step for of_kind in asked.values() for step in of_kind}):
            for scoring in (scoring for scoring in self.scorings if step in asked[scoring.kind]):
                score = Score(run, step, scoring, self.finetune_seeds(run, step) if scoring.kind != "judge" else [])
                rows = [scoring.rows, *([scoring.trained.rows] if scoring.trained else [])]
                read = [ROWS.format(rows=name, task=task) for name in rows for task in scoring.tasks]
                if scoring.trained:
                    read.append(self._file(replace(score, scoring=scoring.trained)))
                file = self._file(score)
                self.scores[file], self.inputs_of[file] = score, read
                if self.config.glue.keep_finetuned and scoring.kind == "finetune" and step == self.final:
                    again = file.replace(".json", "-weights.json")
                    self.kept[again], self.inputs_of[again] = score, read

    def _file(self, score: Score) -> str:
        """The file of scores, whose name says the tasks and seeds, in whatever order they are configured."""
        tasks, seeds = sorted(score.scoring.tasks), score.seeds
        request = f"{len(tasks)}x{len(seeds)}-{key(tasks, seeds)}" if seeds else "pairs"
        model = Path(self.runs[score.run]).parent.name
        names = {"host": score.run.host, "model": model, "seed": score.run.pretrain_seed, "step": score.step}
        pattern = ROBUSTNESS if score.scoring.trained else SCORES
        return pattern.format(suite=score.scoring.name, **names, request=request)

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
        return step.paths()[0]

    def _probes(self) -> Iterator[str]:
        """Where the relations that operators can express are measured."""
        operators = [] if self.grids else [self.operators[name] for name in self.config.sweep.probes]
        if operators:
            yield self._file_of("measured/probes", "probes.csv", {"operators": to_builtins(operators)}, [])

    # What rules ask.

    def reads(self, output: str) -> Callable[[Any], list[str]]:
        """The inputs of a job by its wildcards."""
        return lambda wildcards: self.inputs_of[output.format(**wildcards)]

    def request(self, output: str) -> Callable[[Any], list[str]]:
        """The options of a job that scores by its wildcards: tasks and fine-tuning seeds; none for minimal pairs."""
        return lambda wildcards: {**self.scores, **self.kept}[output.format(**wildcards)].options

    def _needs(self, processes: int) -> SimpleNamespace:
        """The resources on a node of a job that computes with a model, by its wildcards: a thread or more and a GPU for
        each process, unless a CPU is as good, and MB of memory, more at each attempt."""

        def shape(wildcards: Any) -> Shape:
            size = getattr(wildcards, "size", None)
            return self.shapes[size] if size else self._shapes[wildcards.model]

        return SimpleNamespace(
            threads=lambda wildcards: shape(wildcards).threads * processes,
            memory=lambda wildcards, attempt: shape(wildcards).memory * processes * attempt,
            gpus=lambda wildcards: shape(wildcards).needs_gpu * processes,
        )

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
            "runs": [self.runs[run] for run in self.runs if run.host == ENCODER],
            "runs_of_others": [self.runs[run] for run in self.runs if run.host != ENCODER],
            "scores": {suite: self._scores("finetune", suite, lambda size: self.compared) for suite in suites},
            "curve": {suite: self._scores("finetune", suite, self.curve_steps) for suite in suites},
            "robustness": self._scores("robustness", "glue"),
            "blimp": self._scores("judge", "blimp"),
            "parts": [self.parts.paths(part=part)[2] for part in self.texts],
            "manifest": self.shards,
            **self.measured,
        }
        if self.grids:  # whose runs differ in more than size, operator and seed
            inputs |= {"runs": [], "runs_of_others": [], "parts": []}
            del inputs["manifest"]
            runs = {grid.name: self.runs_of_grid(grid) for grid in self.grids}
            inputs["grids"] = {name: [self.runs[run] for run in of_grid] for name, of_grid in runs.items()}
            inputs["manifests"] = {name: [*map(self.manifest, of_grid)] for name, of_grid in runs.items()}
        return inputs

    def _scores(self, kind: str, suite: str, steps: Callable[[str], list[int]] | None = None) -> list[str]:
        """The files of scores of a kind on a suite, at these steps of a size or at all; the user's own tasks stand with
        GLUE."""
        return [
            file
            for file, score in self.scores.items()
            if (score.scoring.kind, score.scoring.suite) == (kind, suite)
            and (steps is None or score.step in steps(score.run.size))
        ]

    @property
    def input_files(self) -> list[str]:
        """The files that the report waits for."""
        runs = [f"{run}/{name}" for run in self.runs.values() for name in ("done.json", "metrics.jsonl", "timing.json")]
        others = [run for run in self.runs if run.host != ENCODER]
        weights = [
            f"{self.checkpoint(run, step)}/model.safetensors" for run in others for step in self.extracted_steps(run)
        ]
        manifests = map(self.manifest, self.runs) if self.grids else [self.shards]
        corpus = [*self.inputs["parts"], *dict.fromkeys(manifests)]
        return [*runs, *self.scores, *weights, *corpus, *(file for files in self.measured.values() for file in files)]

    @property
    def lacking_weights(self) -> dict[str, Score]:
        """The requests for weights of fine-tuned models whose scores are there, from a time without
        `glue.keep_finetuned`."""
        return {file: score for file, score in self.kept.items() if self._lacks_weights(score)}

    def _lacks_weights(self, score: Score) -> bool:
        file = Path(self._file(score))
        weights = (
            file.parent / f"finetuned/{task}/seed-{seed}.safetensors"
            for task, seed in product(score.scoring.tasks, score.seeds)
        )
        return file.is_file() and not all(map(Path.is_file, weights))

    @property
    def everything(self) -> list[str]:
        """The inputs of the report, and a file of every job whose results are not all there yet.

        The target `all` asks for them. Inputs of jobs are `ancient`, because what lies under a key never changes its
        meaning, and Snakemake looks behind such a file only for what a target asks for. Checkpoints and rows of tasks
        may be deleted once their scores are there.
        """
        asked = {**self.scores, **self.lacking_weights}
        missing = [score for file, score in asked.items() if not Path(file).is_file()]
        rows = [ROWS.format(rows=score.scoring.rows, task=task) for score in missing for task in score.scoring.tasks]
        folders = dict.fromkeys(self.checkpoint(score.run, score.step) for score in missing)
        checkpoints = [f"{folder}/{file}" for folder in folders for file in CHECKPOINT_FILES]
        made = [*self.lacking_weights, *checkpoints, *rows]
        return list(dict.fromkeys([*self.input_files, *map(self.manifest, self.runs), *made]))

    @property
    def lost_steps(self) -> dict[Run, list[int]]:
        """By finished run the steps whose models are still to be made, and of which no weights are left."""
        measured = [file for files in self.measured.values() for file in files if not Path(file).is_file()]
        needed = {*self.everything, *(read for file in measured for read in self.inputs_of[file])}
        lost: dict[Run, list[int]] = {}
        for run, folder in self.runs.items():
            for step in self.extracted_steps(run) if Path(folder, "done.json").is_file() else ():
                model, kept = f"{folder}/step-{step}/model.safetensors", weights_file(Path(folder, "state"), step)
                if step and model in needed and not Path(model).is_file() and not kept.is_file():
                    lost.setdefault(run, []).append(step)
        return lost

    @cached_property
    def key(self) -> str:
        """The key of the report: of its inputs and of all that it says of the configuration."""
        return key(self.inputs, to_builtins(self.report_settings))

    @property
    def reported(self) -> str:
        """The file that is there where the page is of this configuration."""
        return f"{self.folder}/{REPORTED.format(key=self.key)}"

    @property
    def report_settings(self) -> ReportFacts:
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


def _content(settings: Config) -> Config:
    """Settings without the paths of files whose content counts."""
    return without_paths(by_content(settings))
