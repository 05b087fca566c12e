"""Keys and paths: a changed setting changes the keys below it and no others; content counts, names and dates do not."""

import itertools
import json
import os
import random
import re
import shutil
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import yaml
from msgspec import to_builtins

from foreign import make_model
from symbert import paths, sources
from symbert.configuration import merge
from symbert.errors import ConfigError, MissingInputError, UsageError
from symbert.experiment.given import read_yaml
from symbert.experiment.layout import Experiment
from symbert.experiment.project import checked, read_chosen
from symbert.files import write_json
from symbert.glue.score import Finetune, MinimalPairs, Robustness
from symbert.glue.tasks import Task, task_named
from symbert.paths import Run
from symbert.report.names import Known
from symbert.report.style import looks_of
from symbert.steps import read_step
from test_operators import forget

pytestmark = pytest.mark.usefixtures("folder")

BASE = yaml.safe_load("""
experiment: base
scale: demo
source: hub
corpus: {annotations: computed, parts: 3}
glue: {max_examples: 100, max_evaluation_examples: 50, robustness: {noise: [0.1]}}
sweep: {architectures: [encoder, decoder], sizes: [tiny], attention: [original, shared], anatomy: true,
  suites: [glue, superglue, blimp], tasks: [mnli, rte, cb], pretrain_seeds: [1, 2],
  finetuned_pretrain_seeds: [1], finetune_seeds: [1, 2], curve: {sizes: [], finetune_seeds: [1]}, untrained: false}
""")
BELOW = yaml.safe_load("""  # which kinds of key another kind is part of
parts: [shards]
shards: [encoder, decoder, speeds, anatomy]
encoder: [scores, superglue scores, noisy scores, minimal pairs, anatomy]
decoder: [minimal pairs]
rows: [scores, noisy rows]
superglue rows: [superglue scores]
scores: [noisy scores]
noisy rows: [noisy scores]
blimp: [minimal pairs]
""")
RUNS = {"encoder", "decoder"}
ROWS, SCORES = {"rows", "superglue rows"}, {"scores", "superglue scores"}
KINDS = {  # names below for several kinds of key
    **{"nothing": set(), "trainings": {"speeds", *RUNS}, "all rows": ROWS, "all scores": SCORES},
}
# Every key of workflow/defaults.yaml but the axes of the sweep: the kinds of key that it changes, and another value.
EFFECTS = yaml.safe_load("""
report: {scale: laptop, experiment: other, title: A page, sweep.escape_loss: 2.5}
parts, blimp, all rows: {source: mirror, corpus.source: mirror}  # the vocabulary comes from there
trainings, all scores: {compile: true, precision: fp32}
parts: {corpus.annotations: published, corpus.revision: v2,
  corpus.blocklist_url: "https://ut1.example", corpus.filter.rules: [categories, perplexity],
  corpus.filter.blocked_categories: [adult], corpus.filter.categories_from: blocklist, corpus.filter.match: suffix,
  corpus.filter.min_harmful_perplexity: 6.0, corpus.filter.max_harmful_perplexity: 9.0e+4}
shards: {corpus.parts: 2, corpus.pack.sequence_length: 16, corpus.pack.validation_sequences: 100,
  corpus.pack.max_documents: 100, corpus.pack.sequences_per_shard: 100}
trainings: {pretrain.steps: 800, pretrain.batch_size: 64, pretrain.learning_rate: 1.0e-4, pretrain.warmup_steps: 20,
  pretrain.schedule_steps: null, pretrain.decay_steps: 10,
  pretrain.weight_decay: 0.1, pretrain.adam_beta1: 0.8, pretrain.adam_beta2: 0.9,
  pretrain.adam_epsilon: 1.0e-6, pretrain.gradient_clip: 2.0, pretrain.dropout: 0.2, pretrain.mask_probability: 0.2,
  pretrain.evaluate_every: 100, pretrain.save_every: 50,  # losses and steps to keep
  pretrain.init_from: checkpoint}
speeds: {pretrain.micro_batch_size: 2}
decoder: {architectures: {decoder: {steps: 300}}}
blimp, all rows: {glue.source: mirror}
rows: {glue.revision: v2}
all rows: {glue.max_examples: 90, glue.max_evaluation_examples: 40}
rows, blimp: {glue.max_length: 32}
scores: {glue.epochs: 1}
all scores: {glue.batch_size: 8, glue.learning_rate: 1.0e-4, glue.warmup_ratio: 0.2, glue.weight_decay: 0.1,
  glue.adam_epsilon: 1.0e-6, glue.gradient_clip: 2.0, glue.dropout: 0.2}
noisy rows: {glue.robustness.sets: [hans], glue.robustness.noise: [0.2], glue.robustness.noise_kinds: [drop]}
superglue scores: {suites.superglue.epochs: 3}
superglue rows: {suites.superglue.max_length: 64}
trainings, all rows, noisy rows, blimp: {sweep.grids: {one: {pretrain_seeds: [7]}},  # no scores
  sweep.tune: {learning_rate: [1.0e-3, 2.0e-3], seeds: [101]}}
# How a job computes, what it keeps, and what this sweep does not ask for.
nothing: {mirror: ., corpus.files: "*.jsonl", corpus.dataset: {path: a/b}, corpus.keep_raw: true,
  corpus.filter.max_bad_fraction: 0.1,
  pretrain.shard_parameters: true, pretrain.processes: 2, pretrain.nodes: 1, pretrain.together: 4,
  glue.allow_partial: false, glue.keep_finetuned: false, glue.robustness.files: .,
  suites.squad2.epochs: 3, suites.squad2.batch_size: 3, suites.squad2.learning_rate: 3, suites.squad2.max_length: 64,
  rates.gpu: A100, rates.core_flops: 7.0, rates.core_layer_seconds: 7.0,
  rates.job_seconds: 7.0, operators: {wide: {class: shared, init_scale: wide}},
  sizes: {deep: {num_hidden_layers: 3, hidden_size: 64, num_attention_heads: 2, intermediate_size: 64}},
  tasks: {own: {train: a, validation: b, columns: [x], metric: f1, labels: ["n", "y"]}},
  texts: {copies: {source: copying, vocabulary: null, sequence_length: 16, validation_sequences: 64}},
  sweep.tuning_seeds: [8, 9]}
""")
EFFECTS = {
    key: (value, set().union(*(KINDS.get(kind, {kind}) for kind in kinds.split(", "))))
    for kinds, values in EFFECTS.items()
    for key, value in values.items()
}
# Axes of the sweep: more of them adds folders, and changes none but those that describe all models together.
MORE = yaml.safe_load("""
{sweep.architectures: [encoder, decoder], sweep.sizes: [tiny, small], sweep.attention: [original, shared, pairwise],
 sweep.contrasts: [[shared, original]], sweep.pretrain_seeds: [1, 2, 3], sweep.finetuned_pretrain_seeds: [1, 2],
 sweep.finetune_seeds: [1, 2, 3], sweep.suites: [glue, superglue, blimp, squad2], sweep.tasks: [mnli, rte, cb, cola],
 sweep.untrained: true, sweep.anatomy: false, sweep.curve.sizes: [tiny],
 sweep.curve.finetune_seeds: [2], sweep.curve.steps: {tiny: [200]}, models: {mine: {path: mine}}}
""")


@pytest.fixture
def start(root, folder, monkeypatch):
    """The experiment of BASE with changes; `set` is one key."""
    demo = merge(read_yaml(root / "workflow/defaults.yaml"), read_yaml(root / "workflow/scales/demo.yaml"))
    for name in "abcd":
        Path(name).write_text(f"{name}\n")
    Path("en").mkdir()
    write_checkpoint(Path("checkpoint"), root)
    monkeypatch.syspath_prepend(str(folder))
    forget()

    def start(*changes: dict, **keys) -> Experiment:
        config = json.loads(json.dumps(merge(demo, BASE)))
        for change in (*changes, *(nested(key, value) for key, value in keys.items())):
            config = merge(config, change)
        return Experiment(checked(config))

    return start


def write_checkpoint(folder: Path, root: Path, **changes) -> None:
    """What a plan reads of a checkpoint of the size tiny: its weights by their content alone."""
    folder.mkdir(exist_ok=True)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 64, "intermediate_size": 256}
    write_json(folder / "config.json", {"model_type": "bert", "vocab_size": 300, **shape, **changes})
    (folder / "model.safetensors").write_bytes(b"weights")
    shutil.copy(root / "src/symbert/demo" / sources.VOCABULARY.location, folder)


def nested(key: str, value) -> dict:
    """A change of one key, with the directories that it asks for."""
    change = value
    for name in reversed(key.split(".")):
        change = {name: change}
    if value == "mirror":
        change = merge(change, {"mirror": "."})
    return merge(change, {"glue": {"robustness": {"files": "."}}}) if key.endswith("robustness.sets") else change


def leaves(value: dict, above: str = "") -> list[str]:
    """The keys that hold no further ones; a map that is empty, or whose keys the user chooses, is one."""
    if isinstance(value, dict) and value and above != "sweep.curve.steps":
        return [key for name, item in value.items() for key in leaves(item, f"{above}.{name}" if above else name)]
    return [above]


def keys_of(experiment: Experiment) -> dict[str, set[str]]:
    """The keyed paths of an experiment by kind."""
    names = {Finetune: "scores", Robustness: "noisy scores", MinimalPairs: "minimal pairs"}
    kinds = defaultdict(set, {kind: {*files} for kind, files in experiment.measured.items()})
    for kind, path in (("shards", experiment.shards), ("parts", experiment.parts.folder)):
        kinds[kind].add(path)
    for run, folder in experiment.runs.items():
        kinds[run.architecture].add(folder)
    for name in (Path(scoring.rows.folder).name for scoring, _ in experiment.scorings):
        suites = {"robustness": "noisy rows", "superglue": "superglue rows", "blimp": "blimp"}
        kinds[suites.get(name.split("-")[-2], "rows")].add(name)
    for file, score in experiment.scores.items():
        kinds["superglue scores" if score.scoring.suite == "superglue" else names[type(score.scoring)]].add(file)
    return {**kinds, "report": {experiment.key}}


def with_all_below(kinds: set[str]) -> set[str]:
    """These kinds of key and those that they are part of; every one is part of the report's."""
    reached, new = set(), set(kinds)
    while new:
        reached |= new
        new = {below for kind in new for below in BELOW.get(kind, ())} - reached
    return reached | {"report"} if reached else reached


def assert_changed(before: dict, after: dict, kinds: set[str], key: str = "") -> None:
    changed = {kind for kind in before | after if before.get(kind) != after.get(kind)}
    assert changed == with_all_below(kinds), key


def test_every_key_of_the_configuration_has_its_effect_declared(root):
    assert {*leaves(read_yaml(root / "workflow/defaults.yaml"))} == {*EFFECTS, *MORE}


def test_a_changed_setting_changes_exactly_the_keys_below_it(start):
    before = keys_of(start())
    for key, (value, kinds) in EFFECTS.items():
        assert_changed(before, keys_of(start(nested(key, value))), kinds, key)


def test_more_of_an_axis_keeps_the_folders_that_are_there(start):
    start_less = start()
    make_model(Path("mine"), "bert")
    for key, value in MORE.items():
        less, more = start_less, start(nested(key, value))
        if key in ("sweep.architectures", "sweep.anatomy"):  # whose values above are fewer
            less, more = more, less
        kept = {file: facts for file, facts in less.settings.items() if not re.search("/(speeds|anatomy)-", file)}
        assert len(kept) > 20 and kept.items() <= more.settings.items(), key


def test_a_key_is_eight_hexadecimal_digits():
    assert re.fullmatch("[0-9a-f]{8}", paths.key({"steps": 1})) and paths.key({"steps": 1}) != paths.key({"steps": 2})


def test_the_spelling_of_a_configuration_changes_no_key(start, root):
    experiment = start()
    whole = to_builtins(experiment.config)

    def shuffled(value):
        if not isinstance(value, dict):
            return value
        names = list(value)
        random.Random(0).shuffle(names)
        return {name: shuffled(value[name]) for name in names}

    Path("whole.yaml").write_text(yaml.safe_dump(shuffled(whole), sort_keys=False))
    texts = [f"{name}={json.dumps(value)}" for name, value in BASE.items()]
    spellings = {
        "defaults written out, in another order": read_chosen(root, None, [Path("whole.yaml")], None),
        "texts on the command line": read_chosen(root, None, None, texts),
        "1 for 1.0": start(nested("pretrain.gradient_clip", 1), nested("glue.dropout", 0)).config,
    }
    for spelling, config in spellings.items():
        assert Experiment(config).record == experiment.record, spelling


def test_text_of_the_users_own_counts_by_content_and_by_how_it_is_read(start):
    """Lines of JSON in a file named .txt are learned as they stand; renamed, they are not."""

    def keys() -> dict[str, set[str]]:
        return keys_of(start({"mirror": ".", "corpus": {"source": "files", "files": "en/*"}}))

    for name in ("one.txt", "two.jsonl"):
        Path("en", name).write_text(json.dumps({"text": name}))
    before = keys()
    os.utime("en/one.txt", (1, 1))
    Path("en/two.jsonl").rename("en/0.ndjson")
    assert keys() == before, "touched and renamed"
    Path("en/one.txt").rename("en/one.jsonl")
    assert_changed(before, keys(), {"shards"})
    Path("en/one.jsonl").rename("en/one.txt")
    Path("en/0.ndjson").write_text(json.dumps({"text": "another"}))
    assert_changed(before, keys(), {"shards"})


MIRROR = {"source": "mirror", "mirror": "theirs"}
CONTENTS = {  # a file that settings name, and the kinds of key that its content is part of
    "sets/train.tsv": ({"glue": {"robustness": {"files": "sets", "sets": ["hans"]}}}, {"noisy rows"}),
    "theirs/google-bert/bert-base-uncased/vocab.txt": (MIRROR, {"parts", "blimp", *ROWS}),
    "theirs/oscar-corpus/OSCAR-2301/en_meta/checksum.sha256": (MIRROR, {"parts"}),  # the parts' text follows from it
    "theirs/oscar-corpus/harmful-kenlms/en.arpa": (MIRROR, {"parts"}),
    "theirs/ut1/blacklists.tar.gz": (MIRROR, {"parts"}),
}


@pytest.mark.parametrize("file", CONTENTS)
def test_files_count_by_their_content(start, file):
    changes, kinds = CONTENTS[file]
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text("a")
    before = keys_of(start(changes))
    os.utime(file, (1, 1))
    assert keys_of(start(changes)) == before
    Path(file).write_text("b")
    assert_changed(before, keys_of(start(changes)), kinds)


def test_a_selection_has_the_same_options_whatever_the_order_of_tasks(start):
    """Snakemake computes again what has other parameters: two experiments would score a checkpoint in turns."""
    selections = []
    for tasks in (["mnli", "rte", "cb"], ["cb", "rte", "mnli"]):
        experiment = start({"sweep": {"tasks": tasks}})
        selections.append({file: score.options for file, score in experiment.scores.items()})
    assert selections[0] == selections[1]


def test_a_task_of_the_users_own_counts_by_content_and_changes_no_other_rows(start):
    def keys(train: str, **changes) -> dict[str, set[str]]:
        irony = {"columns": ["text"], "metric": "f1", "labels": ["no", "yes"], "train": train, "validation": "dev.csv"}
        return keys_of(start({"tasks": {"irony": irony | changes}, "sweep": {"tasks": ["rte", "irony"]}}))

    for name in ("train", "dev"):
        Path(f"{name}.csv").write_text(f"text,label\n{name},no\n")
    before = keys("train.csv")
    others = keys("train.csv", metric="accuracy"), keys("train.csv", columns=["more"])
    assert len({frozenset(each["rows"]) for each in (before, *others)}) == 3, "by what is read, too"
    shutil.copy("train.csv", "renamed.csv")
    assert keys("renamed.csv") == before
    Path("train.csv").write_text("text,label\nedited,no\n")
    after = keys("train.csv")
    assert_changed(before, after, {"rows"})
    rte = [name for name in before["rows"] if name.startswith("glue")]
    assert rte and {*rte} <= after["rows"]


def test_two_experiments_of_one_process_each_have_their_own_task_of_one_name(start):
    """Tasks had one registry: the experiment that was made last said what the other one's task is."""
    for name in ("train", "dev"):
        Path(f"{name}.csv").write_text(f"text,label\n{name},no\n")
    files = {"columns": ["text"], "train": "train.csv", "validation": "dev.csv"}
    definitions = {
        "mine": {"metric": "f1", "labels": ["no", "yes"]},
        "theirs": {"metric": "accuracy", "labels": ["a", "b", "c"]},
        "graded": {"metric": "pearson", "problem_type": "regression"},
        "pairs": {"metric": "f1", "labels": ["no", "yes"], "columns": ["text", "more"]},
    }

    def made(name: str) -> Experiment:
        return start({"tasks": {"irony": files | definitions[name]}, "sweep": {"tasks": ["rte", "irony"]}})

    def task_of(experiment: Experiment) -> Task:
        (rows,) = (how.rows for how, tasks in experiment.scorings if tasks == ["irony"] and isinstance(how, Finetune))
        return rows.task("irony")

    alone = {name: made(name) for name in definitions}
    expected = {name: (experiment.record, task_of(experiment)) for name, experiment in alone.items()}
    assert len({repr(task) for _, task in expected.values()}) == len(definitions)
    for first, second in itertools.pairwise([*definitions, "mine"]):
        one, other = made(first), made(second)
        assert (one.record, task_of(one)) == expected[first]
        assert (other.record, task_of(other)) == expected[second]
    with pytest.raises(UsageError, match="unknown task 'irony'"):
        task_named("irony")


def test_commands_read_the_steps_that_were_planned(start):
    experiment = start()
    experiment.write()
    for how, _ in experiment.scorings:
        assert read_step(Path(how.folder), Finetune | Robustness | MinimalPairs) == how
        assert read_step(Path(how.rows.folder), type(how.rows)) == how.rows


@pytest.mark.parametrize("kind", ["settings.json", "run.json"])
def test_other_settings_under_the_same_key_are_refused(start, kind):
    experiment = start()
    experiment.write()
    start()
    file = Path(next(file for file in experiment.settings if file.endswith(kind)))
    write_json(file, {**json.loads(file.read_text()), "more": 1})
    with pytest.raises(ConfigError, match=f"{file}: holds other settings under the same key"):
        start().write()


def test_published_files_of_a_mirror_count_by_content_wherever_the_mirror_lies(start):
    """The key of the demo held the digest of all of its files, and that of a mirror its place."""
    embedded = start(source="embedded")
    for place in ("one", "two"):
        shutil.copytree(sources.DEMO, place)
        copied = start({"source": "mirror", "mirror": place, "corpus": {"parts": len(embedded.texts)}})
        assert (copied.parts.key, copied.shards) == (embedded.parts.key, embedded.shards)


def test_a_checkpoint_to_begin_from_counts_by_its_weights_wherever_they_lie(start, root):
    begun = {"pretrain": {"init_from": "checkpoint"}}
    before = keys_of(start(begun))
    Path("checkpoint/README.md").write_text("A model.")
    Path("checkpoint").rename("elsewhere")
    assert_changed(before, keys_of(start(nested("pretrain.init_from", "elsewhere"))), {"report"})  # it names the folder
    Path("elsewhere/model.safetensors").write_bytes(b"others")
    assert_changed(before, keys_of(start(nested("pretrain.init_from", "elsewhere"))), {"speeds", *RUNS})
    of_one = start(nested("architectures.decoder.init_from", "elsewhere"))
    assert {run.architecture for run, step in of_one.pretrainings.items() if step.init_from} == {"decoder"}


UNFIT = yaml.safe_load("""
"'pretrain.init_from': absent: No such file": {pretrain: {init_from: absent}}
"'num_attention_heads' is 4, the size 'tiny' has 2": {pretrain: {init_from: heads}}
"its piece 5 is 'another'": {pretrain: {init_from: words}, source: embedded}
"attention 'wide': 'init_scale'": {pretrain: {init_from: checkpoint}, sweep: {attention: [wide]}}
"'sweep.text' has texts": {pretrain: {init_from: checkpoint}, sweep: {text: [copies], suites: [glue], tasks: [rte]}}
"asks for models without pre-training": {pretrain: {init_from: checkpoint}, sweep: {untrained: true}}
""")


@pytest.mark.parametrize("said", UNFIT)
def test_a_checkpoint_that_does_not_fit_is_refused_before_anything_is_computed(start, root, said):
    wide = {"operators": {"wide": {"class": "shared", "init_scale": "wide"}}}
    texts = {"copies": {"source": "copying", "vocabulary": None, "sequence_length": 16, "validation_sequences": 64}}
    start()
    write_checkpoint(Path("heads"), root, num_attention_heads=4)
    write_checkpoint(Path("words"), root)
    pieces = Path("words/vocab.txt").read_text().splitlines()
    Path("words/vocab.txt").write_text("\n".join([*pieces[:5], "another", *pieces[6:]]))
    with pytest.raises((ConfigError, MissingInputError), match=said):
        start(wide, {"texts": texts}, UNFIT[said])


def test_the_parts_of_a_large_corpus_are_not_listed_in_what_a_run_is_made_of(start):
    few, many = (start({"corpus": {"parts": parts}}).rows(()) for parts in (3, 2000))
    assert len(many.names) == 2000 and many.key != few.key
    assert len(msgspec.json.encode(many)) < len(msgspec.json.encode(few)) + 9


def test_a_moved_project_changes_no_key_of_its_stand_ins(start, monkeypatch, tmp_path_factory):
    """Its paths do not begin at the root either: a folder of results may be copied."""
    embedded = start(source="embedded")
    moved = tmp_path_factory.mktemp("elsewhere") / "demo"
    shutil.copytree(sources.DEMO, moved)
    monkeypatch.setattr(sources, "DEMO", moved)
    assert start(source="embedded").record == embedded.record
    assert str(Path.cwd()) not in json.dumps(embedded.record) and str(sources.DEMO) not in json.dumps(embedded.record)
    assert all(file.startswith("results/") for file in embedded.settings)


LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
SMALL = {"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 256}
DEFINED = {  # the same names
    "large": {"sizes": {"own": LARGE}, "operators": {"own": {"class": "pairwise", "init_scale": "wide"}}},
    "small": {"sizes": {"own": SMALL}, "operators": {"own": {"class": "shared"}}},
}
OF_BOTH = {"sweep": {"sizes": ["tiny", "own"], "attention": ["original", "own"], "curve": {"sizes": []}}}


@pytest.mark.parametrize("order", [("large", "small"), ("small", "large")])
def test_two_experiments_of_one_process_do_not_see_each_others_sizes_and_operators(start, order):
    """The second one's size of the same name gave the first one's job its memory and its GPU."""

    def facts(experiment):
        folder = Path(experiment.runs[Run("own", "own", 1)]).parent.name
        job, known = SimpleNamespace(model=folder), Known(experiment.shapes, experiment.operators)
        needs = experiment.needs.memory(job, 1), experiment.needs.gpus(job), experiment.needs.threads(job)
        looks, sizes = looks_of(["own", "original"], known), known.sizes(["tiny", "own"])
        return needs, looks, sizes, json.dumps(experiment.record)

    alone = {name: facts(start(**DEFINED[name], **OF_BOTH)) for name in order}
    together = {name: start(**DEFINED[name], **OF_BOTH) for name in order}
    assert {name: facts(experiment) for name, experiment in together.items()} == alone
    assert (alone["large"][2], alone["small"][2]) == (["tiny", "own"], ["own", "tiny"])
    for value, other in zip(*alone.values(), strict=True):
        assert value != other
