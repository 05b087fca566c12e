"""An experiment: a checked configuration, as axes and as all its paths. Imports no torch."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace as replaced

from symbert.configuration import (
    NUMBERS_TEXT,
    PARALLEL_FILES,
    Config,
    GlueSettings,
    MinimalPairSettings,
    ParallelSettings,
    PretrainSettings,
    TaskSettings,
    annotations_of,
    axes_of,
    experiment_name,
    filter_of,
    finetuned_pretrain_seeds,
    has_filter,
    needs_harmful_model,
    other_hosts,
    protocol_of,
    protocol_of_pairs,
    recorded_settings,
    report_of,
    robustness_of,
    runs_of,
    settings_from,
    source_of,
    values_of,
)
from symbert.errors import ConfigError
from symbert.experiment.sweep import Grid, grids_of, packed_as, report_of_grids, text_of, trained_as, variant_of
from symbert.files import known_sha256, read_json_or_empty, write_json, write_text
from symbert.glue.blimp import PARADIGMS, published_pairs
from symbert.glue.challenges import challenges_for
from symbert.glue.tasks import SUITES, Suite, Task, published_split, suite_named, task_named, tasks_of_suite
from symbert.hosts import ENCODER, HOSTS
from symbert.operators import operator_named
from symbert.paths import (
    CHECKPOINT_FILES,
    RESULTS,
    ROBUSTNESS,
    ROWS,
    RUN,
    SCORES,
    TOKENIZER_FILES,
    VARIANT,
    Run,
    by_content,
    key,
)
from symbert.pretrain.launch import launcher, threads_per_process
from symbert.sizes import SIZES, Shape
from symbert.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    EMBEDDED,
    SOURCES,
    VOCABULARY,
    PublishedFile,
    harmful_model_file,
    located,
    name_of_text,
    part_file,
)

BLOCKLIST_FILES = {"archive": BLOCKLIST, "checksums": BLOCKLIST_CHECKSUMS}
CONFIGURATION = "config.yaml"  # in the folder of an experiment: all keys, as Snakemake's --configfile takes them


@dataclass(frozen=True)
class Rows:
    """A folder below results/tasks: the rows of a suite or a task, their noisy and out-of-domain sets, or pairs."""

    name: str
    files: dict[str, list[str]]  # by task: the published files, or the user's own


@dataclass(frozen=True)
class Scoring:
    """A folder below results/scores: how checkpoints are scored on rows."""

    name: str
    kind: str  # finetune | robustness | judge
    suite: str
    rows: str
    tasks: list[str]
    trained_rows: str | None = None  # of robustness: the rows of the fine-tuning
    trained: str | None = None  # and its scores


class Experiment:
    """A checked configuration, as axes and as paths from the folder where Snakemake is run.

    ConfigError where a folder of the same key exists with other settings.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = experiment_name(config)
        self.folder = f"{RESULTS}/{self.name}"
        self.final: int = config["pretrain"]["steps"]  # the last step of pre-training
        self.compared = [0, self.final] if config["sweep"]["untrained"] else [self.final]  # the steps of Table 3
        self.tasks: list[str] = config["sweep"]["tasks"]  # that every checkpoint is fine-tuned on
        self.settings: dict[str, Config] = {}  # by file: settings.json of each keyed folder, run.json of each run
        self.published: dict[str, PublishedFile] = {}  # that are read, by name
        self.requests: dict[str, tuple[list[str], list[int]]] = {}  # tasks and seeds by the name of a request

        self.grids = grids_of(config)  # of a sweep that lists values of other keys; then nothing is fine-tuned

        self.is_own_text = not SOURCES[source_of(config, "corpus")].is_published
        self.texts = self._texts()
        self.vocabulary = self._published(VOCABULARY, "corpus")
        self.parts_folder = self._keyed("corpus/parts", self._parts_settings())
        self.shards = self._shards(config["corpus"]["pack"])
        self._rows_of_variants: dict[VARIANT, str] = {(): self.shards}  # folders
        self.text = self._parallel_text()  # None unless a host translates it
        self.pairs = self.text and self._keyed("corpus/pairs", {"pairs": values_of(self.text)})
        self.models = {run: self._model(run) for run in self.pretrainings()}  # the name of the model of each run
        self.runs_by_folder = {(run.host, model): run for run, model in self.models.items()}
        self.rows: dict[str, Rows] = {}  # by folder below results/tasks
        scorings = [] if self.grids else self._scorings()
        self.scorings: dict[str, Scoring] = {scoring.name: scoring for scoring in scorings}

    def _keyed(self, name: str, settings: Config) -> str:
        """A folder below results/ whose name ends in the key of its settings."""
        if EMBEDDED in json.dumps(settings):
            settings = {**settings, "embedded": self._embedded}
        if digests := {name: known_sha256(file) for name, file in settings.items() if self._is_in_place(file)}:
            settings = {**settings, "sha256": {**settings.get("sha256", {}), **digests}}
        folder = f"{RESULTS}/{name}-{key(by_content(settings))}"
        self._plan(f"{folder}/settings.json", settings)
        return folder

    def _plan(self, file: str, settings: Config) -> None:
        """Note the settings behind a key. ConfigError where the file has others: eight digits may be alike."""
        if Path(file).is_file() and by_content(read_json_or_empty(Path(file))) != by_content(settings):
            raise ConfigError(f"{file}: holds other settings under the same key; move its folder away")
        self.settings[file] = settings

    def _is_in_place(self, file: Any) -> bool:
        """Whether it is the name of a file in a mirror or a directory, where another one may take its place."""
        is_published = isinstance(file, str) and file in self.published
        return is_published and not file.startswith((f"{EMBEDDED}/", f"{RESULTS}/")) and Path(file).is_file()

    @cached_property
    def _embedded(self) -> str:
        """What identifies the stand-ins of the package."""
        return known_sha256(located(f"{EMBEDDED}/SHA256SUMS"))

    # The corpus.

    def _texts(self) -> dict[str, str]:
        """The text of each part, in the order in which documents are taken. A file of the user's own is a part, and its
        SHA-256 is its name and place, so that a file may be renamed, but not to be read as another kind of file."""
        source = SOURCES[source_of(self.config, "corpus")]
        if self.is_own_text:
            return dict(sorted((name_of_text(path), path) for path in source.files_in_place(self.config)))
        return {part: self._published(part_file(part), "corpus") for part in source.parts(self.config)}

    def _parts_settings(self) -> Config:
        """What makes token ids of the text of a part."""
        config, settings = self.config, {"vocabulary": self.vocabulary, "split_by_content": self.is_own_text}
        settings["filter"] = {**filter_of(config), "annotations": annotations_of(config)}
        if not self.is_own_text:
            settings["checksums"] = self._published(CORPUS_CHECKSUMS, "corpus")
        if has_filter(config, "categories"):
            files = {name: self._published(file, "corpus") for name, file in BLOCKLIST_FILES.items()}
            settings["blocklist"] = self._keyed("corpus/blocklist", files) + "/blocklist.marisa"
        if needs_harmful_model(config):
            settings["harmful_model"] = self._published(harmful_model_file(config["corpus"]["harmful_model"]), "corpus")
        return settings

    def _shards(self, packing: Config) -> str:
        """The folder of the corpus's rows."""
        settings = {"parts": list(self.texts), "from": self.parts_folder, "pack": packing}
        return self._keyed("corpus/shards", {**settings, "vocabulary": self.vocabulary})

    def _parallel_text(self) -> ParallelSettings | None:
        """The parallel text, the user's or the stand-in, with the SHA-256 of its files; None unless a host reads it."""
        if all(HOSTS[host].reads_corpus for host in self.config["sweep"]["hosts"]):
            return None
        text = settings_from({**(self.config["parallel"] or NUMBERS_TEXT), "sha256": {}}, ParallelSettings, "config")
        return replaced(text, sha256={name: known_sha256(text.path(name)) for name in PARALLEL_FILES})

    def _published(self, file: PublishedFile, stage: str, revision: str | None = None) -> str:
        """The name of a published file: its path in the mirror, or where the hub's is downloaded, or `embedded:…`."""
        name = f"{self._published_folder(file, stage, revision)}/{file.path}"
        self.published[name] = file
        return name

    def _published_folder(self, file: PublishedFile, stage: str, revision: str | None) -> str:
        """The folder of all files of a repository, or of UT1's."""
        source = SOURCES[source_of(self.config, stage)].beside(self.config, stage)
        if not source.is_remote:
            return f"{source.root(self.config, stage)}/{file.repository}"
        if file.kind == "ut1":
            settings = {"url": self.config["corpus"]["blocklist_url"]}
            if "://" not in settings["url"]:
                return settings["url"].rstrip("/")  # a directory
        else:
            default = self.config[stage]["revision"] if file.kind == "dataset" else "main"
            settings = {"kind": file.kind, "repository": file.repository, "revision": revision or default}
        return self._keyed(f"published/{file.repository.replace('/', '--')}", settings)

    # Pre-training.

    def _model(self, run: Run) -> str:
        """The name of a run's model, with the key of all that its training follows from but the seed."""
        facts = {
            **{name: value for name, value in run.facts.items() if name != "pretrain_seed"},
            "host": run.host,
            "model": run.model,
            "training": recorded_settings(self.training(run)),
            "manifest": self.manifest(run),
        }
        model = f"{run.size}-{run.attention}-{key(facts)}"
        folder = RUN.format(host=run.host, model=model, seed=run.pretrain_seed)
        reads_corpus = HOSTS[run.host].reads_corpus and not text_of(self.config, run.variant)
        source = {"corpus_source": source_of(self.config, "corpus")} if reads_corpus else {}
        self._plan(f"{folder}/run.json", {**facts, "pretrain_seed": run.pretrain_seed, **source})
        return model

    def manifest(self, run: Run) -> str:
        """The file that describes the rows that a run learns from."""
        if not HOSTS[run.host].reads_corpus:
            return f"{self.pairs}/manifest.json"
        if run.variant not in self._rows_of_variants:
            text, packing = text_of(self.config, run.variant), packed_as(self.config, run.variant)
            self._rows_of_variants[run.variant] = self._keyed("corpus/text", text) if text else self._shards(packing)
        return f"{self._rows_of_variants[run.variant]}/manifest.json"

    def run_folder(self, run: Run) -> str:
        """The folder of a pre-training."""
        return RUN.format(host=run.host, model=self.models[run], seed=run.pretrain_seed)

    def checkpoint(self, run: Run, step: int) -> str:
        """The folder of a checkpoint."""
        return f"{self.run_folder(run)}/step-{step}"

    def training(self, run: Run) -> PretrainSettings:
        """How a run is trained: as every run of its host, but for swept keys."""
        return trained_as(self.config, run.host, run.variant)

    def last_step(self, run: Run) -> int:
        """The last step of a run."""
        return self.training(run).steps

    # Tasks and scores.

    def _scorings(self) -> Iterator[Scoring]:
        """How checkpoints are scored: on suites, tasks of the user's own, noise and other domains, and pairs."""
        for suite in self.suites:
            tasks = tasks_of_suite(suite.name, self.tasks)
            published = [task for task in tasks if not task_named(task).files]
            groups = {suite.name: published, **{task: [task] for task in tasks if task not in published}}
            for name, members in groups.items():
                if members:
                    yield from self._scorings_of(name, suite, members)
        if self.has_judges:
            settings = {"kind": "pairs", **self._preparation("blimp", MinimalPairSettings)}
            rows = self._rows("blimp", settings, {"blimp": [self._task_file(published_pairs(p)) for p in PARADIGMS]})
            yield self._scoring("blimp", "judge", "blimp", rows, ["blimp"], protocol_of_pairs(self.config))

    def _scorings_of(self, name: str, suite: Suite, tasks: list[str]) -> Iterator[Scoring]:
        """Of tasks that are prepared and fine-tuned together: a suite's, or one of the user's own."""
        settings = {"kind": "tasks", **self._preparation(suite.name, TaskSettings)}
        if own := {task: files for task in tasks if (files := task_named(task).files)}:
            digests = {task: {split: known_sha256(path) for split, path in own[task].items()} for task in own}
            settings["own"] = {task: {**self.config["tasks"][task], "sha256": digests[task]} for task in own}
        rows = self._rows(name, settings, {task: self.files_of(task_named(task)) for task in tasks})
        protocol = values_of(protocol_of(self.config, suite.name, GlueSettings))
        scoring = self._scoring(name, "finetune", suite.name, rows, tasks, protocol)
        yield scoring
        if measured := [task for task in tasks if task in self.measured_tasks]:
            settings = {**settings, "kind": "robustness", "robustness": robustness_of(self.config)}
            if root := settings["robustness"]["root"]:
                settings["other_domains"] = known_sha256(root)
            edited = self._rows(f"{name}-robustness", settings, {task: rows.files[task] for task in measured})
            yield self._scoring(name, "robustness", suite.name, edited, measured, trained=scoring)

    def _preparation(self, suite: str, kind: type[TaskSettings | MinimalPairSettings]) -> Config:
        """How texts of a suite become token ids; `allow_partial` changes no row."""
        values = values_of(protocol_of(self.config, suite, kind))
        return {
            **{key: value for key, value in values.items() if key != "allow_partial"},
            "vocabulary": self.vocabulary,
        }

    def _rows(self, name: str, settings: Config, files: dict[str, list[str]]) -> Rows:
        """A folder of rows; its key holds where the rows come from, whatever tasks are chosen."""
        folder = self._keyed(f"tasks/{name}", {**settings, **self._origin(name)})
        return self.rows.setdefault(Path(folder).name, Rows(Path(folder).name, files))

    def _origin(self, name: str) -> Config:
        """The folder with published or GLUE's original files; nothing of one's own tasks, whose content counts."""
        suite = SUITES.get(name.removesuffix("-robustness"))
        if suite is None:
            return {}
        source = SOURCES[source_of(self.config, "glue")]
        if not source.is_published:
            folder = str(source.root(self.config, "glue"))
            return {"original_files": folder, "sha256": {"original_files": known_sha256(folder)}}
        published = PublishedFile("dataset", suite.repository, "")
        return {"source": self._published_folder(published, "glue", suite.revision or None)}

    def files_of(self, task: Task) -> list[str]:
        """The files of a task's splits: the user's own, the published ones; none of GLUE's original files."""
        if task.files:
            return [task.files[split] for split in task.splits]
        if not SOURCES[source_of(self.config, "glue")].is_published:
            return []
        return [self._task_file(published_split(task, split)) for split in task.splits]

    def _task_file(self, file: PublishedFile) -> str:
        """A published file of a suite, at the suite's own commit."""
        suite = next(suite for suite in SUITES.values() if suite.repository == file.repository)
        return self._published(file, "glue", suite.revision or None)

    def _scoring(
        self,
        name: str,
        kind: str,
        suite: str,
        rows: Rows,
        tasks: list[str],
        protocol: Config | None = None,
        trained: Scoring | None = None,
    ) -> Scoring:
        """A folder of scores; of robustness its key holds the folder of the fine-tuning, in place of a protocol."""
        how = {"trained": trained.name} if trained else {"protocol": protocol}
        settings = {"kind": kind, "suite": suite, "rows": rows.name, **how}
        folder = Path(self._keyed(f"{'robustness' if trained else 'scores'}/{name}", settings))
        return Scoring(folder.name, kind, suite, rows.name, tasks, trained and trained.rows, trained and trained.name)

    def scores(self, scoring: Scoring, run: Run, step: int) -> str:
        """The file of the scores that this experiment asks of a checkpoint: the name says which tasks and seeds."""
        request = (
            "pairs" if scoring.kind == "judge" else self.request(scoring.tasks, self.finetune_seeds(run.size, step))
        )
        names = {"suite": scoring.name, "host": run.host, "model": self.models[run], "seed": run.pretrain_seed}
        return (ROBUSTNESS if scoring.trained else SCORES).format(**names, step=step, request=request)

    def request(self, tasks: list[str], seeds: list[int]) -> str:
        """The name of a file of scores, which says the tasks and fine-tuning seeds that it holds."""
        name = f"{len(tasks)}x{len(seeds)}-{key(sorted(tasks), sorted(seeds))}"
        self.requests[name] = (sorted(tasks), sorted(seeds))  # the same options in whatever order they are configured
        return name

    def scoring_of(self, kind: str, suite: str) -> list[Scoring]:
        """The folders of scores of a kind on a suite; the user's own tasks stand with GLUE."""
        return [scoring for scoring in self.scorings.values() if (scoring.kind, scoring.suite) == (kind, suite)]

    def final_scores(self, suite: str, kind: str = "finetune") -> list[str]:
        """The scores of the comparison: every run at its last step, and as it started where that is asked for."""
        steps = self.compared if kind == "finetune" else [self.final]
        runs = [run for run in self.runs() if self.steps(run)]
        return [self.scores(one, run, step) for run in runs for step in steps for one in self.scoring_of(kind, suite)]

    def curve_scores(self, suite: str) -> list[str]:
        """The scores of Figure 3: the curve's sizes at their steps and at the last one, which sets the 95 % line."""
        steps = {run: self.curve_steps(run.size) for run in self.runs() if self.steps(run)}
        scorings = self.scoring_of("finetune", suite)
        return [self.scores(one, run, step) for run in steps for step in steps[run] for one in scorings]

    def judgements(self) -> list[str]:
        """How checkpoints judge BLiMP's pairs."""
        judges = [(run, step) for run in self.pretrainings() for step in self.judging_steps(run)]
        return [self.scores(one, *judge) for one in self.scoring_of("judge", "blimp") for judge in judges]

    def asked_scores(self) -> Iterator[tuple[str, tuple[Run, int, Scoring]]]:
        """Every file of scores, with the checkpoint and how it is scored."""
        for scoring in self.scorings.values():
            for run in self.pretrainings():
                steps = {
                    "finetune": self.steps(run),
                    "robustness": [self.final] if self.steps(run) else [],
                    "judge": self.judging_steps(run),
                }
                for step in steps[scoring.kind]:
                    yield self.scores(scoring, run, step), (run, step, scoring)

    # Axes.

    @property
    def suites(self) -> list[Suite]:
        """The suites that every checkpoint is fine-tuned on, the user's own tasks with GLUE."""
        return [suite for suite in SUITES.values() if tasks_of_suite(suite.name, self.tasks)]

    @cached_property
    def measured_tasks(self) -> list[str]:
        """The tasks whose classifiers are scored on noise or on an out-of-domain set: of GLUE and of the user's own.

        ConfigError when sets are asked for and no task answers any.
        """
        chosen, tasks = self.config["glue"]["robustness"], tasks_of_suite("glue", self.tasks)
        if chosen["noise"] or not chosen["sets"]:
            return tasks if chosen["noise"] else []
        if measured := [task for task in tasks if challenges_for(task_named(task), chosen["sets"])]:
            return measured
        sets = ", ".join(chosen["sets"])
        raise ConfigError(f"config: 'glue.robustness.sets': no task of 'sweep.tasks' answers {sets}; add mnli")

    def finetuning(self, task: str) -> GlueSettings:
        """How every checkpoint is fine-tuned on a task: as on all of its suite."""
        return protocol_of(self.config, suite_named(task).name, GlueSettings)

    def preparation(self, task: str) -> TaskSettings:
        """How the rows of a task are made: as those of all of its suite."""
        return protocol_of(self.config, suite_named(task).name, TaskSettings)

    @property
    def judging(self) -> MinimalPairSettings:
        """Which of BLiMP's pairs every checkpoint judges."""
        return protocol_of(self.config, "blimp", MinimalPairSettings)

    def checkpoints(self) -> list[tuple[Run, int]]:
        """All that is fine-tuned: each run at its steps."""
        return [(run, step) for run in self.runs() for step in self.steps(run)]

    def runs(self, sizes: list[str] | None = None) -> list[Run]:
        """The pre-trainings of the encoder, of these sizes or of all: those that are fine-tuned."""
        return [] if self.grids else [Run(*axes) for axes in runs_of(self.config, sizes)]

    def pretrainings(self) -> list[Run]:
        """All pre-trainings, of the encoder first."""
        swept = [run for grid in self.grids for run in self.runs_of_grid(grid)]
        return list(dict.fromkeys([*self.runs(), *self.runs_of_others(), *swept]))

    def runs_of_grid(self, grid: Grid) -> list[Run]:
        """The pre-trainings of a grid, point by point, with each seed."""
        variants = [(point, variant_of(self.config, point)) for point in grid.points]
        runs = [Run(point["size"], point["attention"], 0, point["host"], variant) for point, variant in variants]
        return [replace(run, pretrain_seed=seed) for run in runs for seed in grid.seeds]

    def runs_of_others(self) -> list[Run]:
        """The pre-trainings of the other hosts."""
        return (
            []
            if self.grids
            else [Run(*axes, host) for host in other_hosts(self.config) for axes in axes_of(self.config)]
        )

    def curve_steps(self, size: str) -> list[int]:
        """The checkpoints of Figure 3 of a size, the last one among them; none when it is not in the curve."""
        curve = self.config["sweep"]["curve"]
        return sorted({*curve["steps"][size], self.final}) if size in curve["sizes"] else []

    def steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that are fine-tuned."""
        return self._scored_steps(run) if run.host == ENCODER else []

    def _scored_steps(self, run: Run) -> list[int]:
        if self.grids or run.pretrain_seed not in finetuned_pretrain_seeds(self.config):
            return []
        return sorted({*self.compared, *self.curve_steps(run.size)})

    def extracted_steps(self, run: Run) -> list[int]:
        """All checkpoints of a run that become models: those that are scored, and those that the report looks at; of
        another host than the encoder, the last one too."""
        if self.grids:
            return []
        last = [] if run.host == ENCODER and not self.config["sweep"]["anatomy"] else [self.last_step(run)]
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
        training = self.training(run)
        kept = [step for step in self._scored_steps(run) if step < training.steps and step % training.save_every == 0]
        return sorted({*kept, training.steps})

    def finetune_seeds(self, size: str, step: int) -> list[int]:
        """The seeds that the comparison and the curve want of one checkpoint; those of the comparison for any other."""
        sweep = self.config["sweep"]
        final = sweep["finetune_seeds"] if step in self.compared else []
        curve = sweep["curve"]["finetune_seeds"] if step in self.curve_steps(size) else []
        return sorted({*final, *curve} or sweep["finetune_seeds"])

    # What rules ask.

    def run_of(self, wildcards: Any) -> Run:
        """The run of a job. ConfigError for a path that is none of this experiment."""
        model, seed = self.runs_by_folder.get((wildcards.host, wildcards.model)), int(wildcards.seed)
        if model is None:
            raise ConfigError(f"{wildcards.model}: no model of the experiment {self.name}; name its configuration")
        return replace(model, pretrain_seed=seed)

    def rows_of_run(self, wildcards: Any) -> str:
        """The rows that a job's run learns from."""
        return self.manifest(self.run_of(wildcards))

    def vocabulary_of(self, wildcards: Any) -> list[str]:
        """The word pieces of a job's run; none where it reads a parallel text."""
        return [located(self.vocabulary)] if HOSTS[wildcards.host].reads_corpus else []

    def checkpoint_files(self, host: str = ENCODER) -> list[str]:
        """The files of a checkpoint of a host: without a tokenizer where it reads no corpus."""
        return [*CHECKPOINT_FILES, *(TOKENIZER_FILES if HOSTS[host].reads_corpus else ())]

    def blocklist_files(self, wildcards: Any) -> list[str]:
        """The archive of a blocklist, and its list of digests."""
        settings = self.settings[f"{RESULTS}/corpus/blocklist-{wildcards.key}/settings.json"]
        return [located(settings[name]) for name in BLOCKLIST_FILES]

    def text_of_part(self, wildcards: Any) -> str:
        """The published or own file of a part."""
        if wildcards.part not in self.texts:
            raise ConfigError(f"{wildcards.part}: no part of this corpus; correct the name or corpus.parts")
        return located(self.texts[wildcards.part])

    def read_with_parts(self, wildcards: Any) -> list[str]:
        """What every part needs beside its text."""
        settings = self.settings[f"{self.parts_folder}/settings.json"]
        names = ("vocabulary", "checksums", "blocklist", "harmful_model")
        return [located(settings[name]) for name in names if name in settings]

    def read_by_pack(self, wildcards: Any) -> list[str]:
        """The token ids and counts of all parts, and the vocabulary."""
        suffixes = (".npy", ".offsets.npy", ".json")
        parts = [f"{self.parts_folder}/{part}{suffix}" for part in self.texts for suffix in suffixes]
        return [*parts, located(self.vocabulary)]

    @property
    def parallel_files(self) -> list[str]:
        """The files of the parallel text."""
        return [str(self.text.path(name)) for name in PARALLEL_FILES] if self.text else []

    def read_by_task(self, wildcards: Any) -> list[str]:
        """The files of a task and the vocabulary."""
        return [*map(located, self.rows[wildcards.rows].files[wildcards.task]), located(self.vocabulary)]

    def read_by_score(self, wildcards: Any) -> list[str]:
        """The rows that a checkpoint is scored on; of robustness also the rows and scores of the fine-tuning."""
        scoring = self.scorings[wildcards.suite]
        rows = [scoring.rows, *([scoring.trained_rows] if scoring.trained_rows else [])]
        files = [ROWS.format(rows=name, task=task) for name in rows for task in scoring.tasks]
        if scoring.trained:
            files.append(self.scores(self.scorings[scoring.trained], self.run_of(wildcards), int(wildcards.step)))
        return files

    def request_of(self, wildcards: Any) -> list[str]:
        """The options of a job that scores: its tasks and fine-tuning seeds; none for minimal pairs."""
        tasks, seeds = self.requests.get(wildcards.request, ([], []))
        return [*(["--tasks", *tasks] if tasks else []), *(["--seeds", *map(str, seeds)] if seeds else [])]

    def read_by_measure(self, wildcards: Any) -> list[str]:
        """The checkpoints whose heads are described, and the corpus; probes read nothing."""
        settings = self.settings[f"{RESULTS}/measured/{wildcards.measure}-{wildcards.key}/settings.json"]
        weights = [f"{folder}/model.safetensors" for folder in settings.get("checkpoints", [])]
        return [*weights, *([settings["manifest"]] if weights else [])]

    # What jobs take.

    def threads(self, wildcards: Any) -> int:
        """CPU threads of a process that computes with a model."""
        return self._shape(wildcards).threads

    def memory(self, wildcards: Any, attempt: int) -> int:
        """MB of such a process; each attempt asks for more."""
        return self._shape(wildcards).memory * attempt

    def gpus(self, wildcards: Any) -> int:
        """One, unless the model is computed on a CPU."""
        return int(self._shape(wildcards).needs_gpu)

    def _shape(self, wildcards: Any) -> Shape:
        return SIZES[wildcards.size if hasattr(wildcards, "size") else self.run_of(wildcards).size]

    @property
    def processes_per_node(self) -> int:
        """The processes of a training on each of its nodes."""
        return self.config["pretrain"]["processes"] // self.config["pretrain"]["nodes"]

    def threads_of_training(self, wildcards: Any) -> int:
        """CPU threads of a training on each of its nodes."""
        return self.threads(wildcards) * self.processes_per_node

    def memory_of_training(self, wildcards: Any, attempt: int) -> int:
        """MB of a training on each of its nodes."""
        return self.memory(wildcards, attempt) * self.processes_per_node

    def gpus_of_training(self, wildcards: Any) -> int:
        """GPUs of a training on each of its nodes."""
        return self.gpus(wildcards) * self.processes_per_node

    @property
    def nodes(self) -> dict[str, Any]:
        """Resources of a training over several nodes: our command starts the tasks, a node each, with its GPUs.

        Slurm's plugin starts none (mpi) and derives none from the GPUs (tasks_per_gpu); gres counts per node.
        """
        nodes = self.config["pretrain"]["nodes"]
        if nodes == 1:
            return {"nodes": 1, "gpu": self.gpus_of_training}
        gres = lambda wildcards: f"gpu:{gpus}" if (gpus := self.gpus_of_training(wildcards)) else ""  # noqa: E731
        return {"nodes": nodes, "gpu": 0, "mpi": "srun", "tasks": nodes, "tasks_per_gpu": 0, "gres": gres}

    @property
    def launcher(self) -> str:
        """What comes before the command of a training: Python, or torchrun for several processes."""
        return launcher(self.config["pretrain"]["processes"], self.config["pretrain"]["nodes"])

    @property
    def execution(self) -> str:
        """The options of a training that change how it is computed, not its result; in no key and no parameter."""
        chosen = self.config["pretrain"]
        threads = threads_per_process(chosen["processes"], chosen["nodes"])
        words = ["--threads", threads]
        words += ["--micro-batch-size", str(chosen["micro_batch_size"])] if chosen["micro_batch_size"] else []
        words += ["--recompute-activations"] if chosen["recompute_activations"] else []
        words += ["--shard-parameters"] if chosen["shard_parameters"] else []
        return " ".join(words)

    @property
    def max_bad_fraction(self) -> str:
        """The option of parts of which some lines may be malformed."""
        share = self.config["corpus"]["filter"]["max_bad_fraction"]
        return f"--max-bad-fraction {share}" if share else ""

    @property
    def allow_partial(self) -> str:
        """The option of tasks that may have fewer rows than published."""
        return "--allow-partial" if self.config["glue"]["allow_partial"] else ""

    @property
    def keep_weights(self) -> str:
        """The option of fine-tunings whose weights are kept: those of the last step."""
        return f"--keep-weights {self.final}" if self.config["glue"]["keep_finetuned"] else ""

    # The report.

    @property
    def speeds(self) -> list[str]:
        """Where the speeds of the operators of each size are measured side by side."""
        return [self._speeds(size) for size in dict.fromkeys(run.size for run in self.runs())]

    def _speeds(self, size: str) -> str:
        runs = [run for run in self.runs([size]) if run.pretrain_seed == self.config["sweep"]["pretrain_seeds"][0]]
        settings = {
            "size": size,
            "models": {run.attention: run.model for run in runs},
            "training": values_of(self.training(runs[0])),
            "manifest": self.manifest(runs[0]),
            "micro_batch_size": self.config["pretrain"]["micro_batch_size"],
        }
        return f"{self._keyed(f'measured/speeds-{size}', settings)}/speeds.json"

    @property
    def anatomy(self) -> str | None:
        """Where the heads of the checkpoints are described; None where nobody asks."""
        if self.grids or not self.config["sweep"]["anatomy"]:
            return None
        folders = [self.checkpoint(run, step) for run in self.runs() for step in {*self.steps(run), self.final} - {0}]
        settings = {"checkpoints": sorted(folders), "manifest": f"{self.shards}/manifest.json"}
        return f"{self._keyed('measured/anatomy', settings)}/anatomy.csv"

    @property
    def probes(self) -> str | None:
        """Where is measured what operators can express; None where nobody asks."""
        operators = [operator_named(name) for name in self.config["sweep"]["probes"]]
        if self.grids or not operators:
            return None
        settings = {"operators": {one.name: {"operator_code": one.code, **one.own_definition} for one in operators}}
        return f"{self._keyed('measured/probes', settings)}/probes.csv"

    @cached_property
    def inputs(self) -> Config:
        """The files of the report, by what they hold; `symbert report` reads them by these names."""
        runs = {run: self.run_folder(run) for run in self.pretrainings()}
        beside_glue = [suite.name for suite in self.suites if suite.name != "glue"]
        inputs = {
            "runs": [folder for run, folder in runs.items() if run.host == ENCODER],
            "runs_of_others": [folder for run, folder in runs.items() if run.host != ENCODER],
            "scores": {suite: self.final_scores(suite) for suite in ["glue", *beside_glue]},
            "curve": {suite: self.curve_scores(suite) for suite in ["glue", *beside_glue]},
            "robustness": self.final_scores("glue", "robustness"),
            "blimp": self.judgements(),
            "parts": [f"{self.parts_folder}/{part}.json" for part in self.texts],
            "manifest": f"{self.shards}/manifest.json",
            "speeds": self.speeds,
            "anatomy": [self.anatomy] if self.anatomy else [],
            "probes": [self.probes] if self.probes else [],
        }
        if self.grids:  # whose runs differ in more than size, operator and seed
            inputs |= {"runs": [], "runs_of_others": [], "parts": []}
            del inputs["manifest"]
            inputs["grids"] = {grid.name: list(map(self.run_folder, self.runs_of_grid(grid))) for grid in self.grids}
        return inputs

    @property
    def input_files(self) -> list[str]:
        """The files that the report waits for."""
        inputs = dict(self.inputs)
        runs = [*inputs.pop("runs"), *inputs.pop("runs_of_others")]
        runs += [run for folders in inputs.pop("grids", {}).values() for run in folders]
        published = [f"{run}/{name}" for run in runs for name in ("done.json", "metrics.jsonl", "timing.json")]
        scores = [file for name in ("scores", "curve") for files in inputs.pop(name).values() for file in files]
        checkpoints = [
            f"{self.checkpoint(run, step)}/model.safetensors"
            for run in self.runs_of_others()
            for step in self.extracted_steps(run)
        ]
        rest = [[files] if isinstance(files, str) else files for files in inputs.values()]
        return list(dict.fromkeys([*published, *scores, *checkpoints, *(file for files in rest for file in files)]))

    @property
    def everything(self) -> list[str]:
        """The inputs of the report, and a file of every job whose results are not all there yet.

        The target `all` asks for them. Inputs of jobs are `ancient`, because what lies under a key never changes its
        meaning, and Snakemake looks behind such a file only for what a target asks for. Checkpoints and rows of tasks
        may be deleted once their scores are there.
        """
        unscored = [(run, step, one) for file, (run, step, one) in self.asked_scores() if not Path(file).is_file()]
        rows = [ROWS.format(rows=one.rows, task=task) for _, _, one in unscored for task in one.tasks]
        folders = dict.fromkeys(self.checkpoint(run, step) for run, step, _ in unscored)
        checkpoints = [f"{folder}/{file}" for folder in folders for file in CHECKPOINT_FILES]
        manifests = [self.manifest(run) for run in self.pretrainings()]
        return list(dict.fromkeys([*self.input_files, *manifests, *checkpoints, *rows]))

    @cached_property
    def key(self) -> str:
        """The key of the report: of its inputs and of all that it says of the configuration."""
        return key(self.inputs, self.report_settings)

    @property
    def report_settings(self) -> Config:
        """What captions say of the experiment."""
        return report_of_grids(self.config, self.grids) if self.grids else report_of(self.config)

    @property
    def record(self) -> Config:
        """The content of experiment.json: configuration, key, and the paths of the report."""
        return {
            "experiment": self.name,
            "key": self.key,
            "configuration": self.config,
            "report": self.report_settings,
            "inputs": self.inputs,
            "checkpoints": [self.checkpoint(run, step) for run in self.models for step in self.extracted_steps(run)],
            "settings": self.settings,
        }

    def write(self) -> None:
        """Write experiment.json, config.yaml, and the settings of keyed folders that have none yet."""
        write_json(Path(self.folder, "experiment.json"), self.record)
        text = yaml.safe_dump(self.config, sort_keys=False, allow_unicode=True)
        write_text(Path(self.folder, CONFIGURATION), f"# snakemake --configfile {self.folder}/{CONFIGURATION}\n{text}")
        for file, settings in self.settings.items():
            if read_json_or_empty(Path(file)) != settings:  # none yet, or a file of the user's was renamed
                write_json(Path(file), settings)
