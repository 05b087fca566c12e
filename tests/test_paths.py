"""Keys and paths: a changed setting changes the keys below it and no others; content counts, names and dates do not."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest
import yaml

from symbert import sources
from symbert.configuration import merge
from symbert.errors import ConfigError, DataError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import checked, read_chosen, read_yaml
from symbert.files import write_json
from symbert.paths import Run
from test_operators import forget

pytestmark = pytest.mark.usefixtures("folder", "nothing_of_ones_own")

BASE = {
    **{"experiment": "base", "scale": "demo", "source": "hub"},
    "corpus": {"annotations": "computed", "parts": 3},
    "glue": {"max_examples": 100, "max_evaluation_examples": 50, "robustness": {"noise": [0.1]}},
    "sweep": {
        **{"hosts": ["encoder", "decoder", "encoder-decoder"], "sizes": ["tiny"], "attention": ["original", "shared"]},
        **{"suites": ["glue", "superglue", "blimp"], "tasks": ["mnli", "rte", "cb"], "anatomy": True},
        **{"probes": ["original"], "pretrain_seeds": [1, 2], "finetuned_pretrain_seeds": [1]},
        **{"finetune_seeds": [1, 2], "curve": {"sizes": [], "finetune_seeds": [1]}},
    },
}
# Which kinds of key another kind is part of.
BELOW = {
    "parts": {"shards"},
    "shards": {"encoder", "decoder", "speeds", "anatomy"},
    "pairs": {"encoder-decoder"},
    "encoder": {"scores", "superglue scores", "noisy scores", "judged pairs", "anatomy"},
    "decoder": {"judged pairs"},
    "rows": {"scores", "noisy rows"},
    "superglue rows": {"superglue scores"},
    "scores": {"noisy scores"},
    "noisy rows": {"noisy scores"},
    "blimp": {"judged pairs"},
}
RUNS = {"encoder", "decoder", "encoder-decoder"}
NOTHING: set[str] = set()
TRAINED = {"speeds", *RUNS}
ROWS, SCORES = {"rows", "superglue rows"}, {"scores", "superglue scores"}
TEXT_PAIRS = dict(zip(["source", "target", "validation_source", "validation_target"], "abcd", strict=True))
OWN_IN_DEMO = {"encoder-decoder"}  # which has its own value in the scale demo
# Every key of workflow/defaults.yaml but the axes of the sweep: another value, and the kinds of key that it changes.
EFFECTS = {
    "scale": ("laptop", {"report"}),
    "source": ("mirror", {"parts", "blimp", *ROWS}),
    "mirror": (".", NOTHING),
    "experiment": ("other", {"report"}),
    "title": ("A page", {"report"}),
    "recipe": ("fast", {*TRAINED, *SCORES}),
    "precision": ("fp32", {*TRAINED, *SCORES}),
    "corpus.source": ("mirror", {"parts", "blimp", *ROWS}),  # the vocabulary comes from there
    "corpus.files": ("*.jsonl", NOTHING),
    "corpus.annotations": ("published", {"parts"}),
    "corpus.parts": (2, {"shards"}),
    "corpus.revision": ("v2", {"parts"}),
    "corpus.keep_raw": (True, NOTHING),
    "corpus.harmful_model": ("en.binary", {"parts"}),
    "corpus.blocklist_url": ("https://ut1.example", {"parts"}),
    **{
        f"corpus.filter.{key}": (value, {"parts"})
        for key, value in {
            **{"rules": ["categories", "perplexity"], "blocked_categories": ["adult"], "categories_from": "blocklist"},
            **{"match": "suffix", "min_harmful_perplexity": 6.0, "max_harmful_perplexity": 9e4},
        }.items()
    },
    "corpus.filter.max_bad_fraction": (0.1, NOTHING),
    "corpus.pack.sequence_length": (16, {"shards"}),
    **{
        f"corpus.pack.{key}": (100, {"shards"})
        for key in ("validation_sequences", "max_documents", "sequences_per_shard")
    },
    "parallel": (TEXT_PAIRS, {"pairs"}),
    "pretrain.steps": (800, TRAINED - OWN_IN_DEMO),
    "pretrain.batch_size": (64, TRAINED - OWN_IN_DEMO),
    **{
        f"pretrain.{key}": (value, TRAINED)
        for key, value in {
            **{"learning_rate": 1e-4, "warmup_steps": 20, "schedule_steps": None, "optimizer": "own_optimizer:sgd"},
            **{"weight_decay": 0.1, "adam_beta1": 0.8, "adam_beta2": 0.9, "adam_epsilon": 1e-6, "gradient_clip": 2.0},
            **{"mask_probability": 0.2, "dropout": 0.2},
            **{"evaluate_every": 100, "save_every": 50},  # which losses metrics.jsonl has, which steps are kept
        }.items()
    },
    "pretrain.recompute_activations": (True, NOTHING),
    "pretrain.shard_parameters": (True, NOTHING),
    "pretrain.micro_batch_size": (2, {"speeds"}),
    "pretrain.processes": (2, NOTHING),
    "pretrain.nodes": (1, NOTHING),
    "hosts": ({"decoder": {"steps": 300}}, {"decoder"}),
    "glue.source": ("mirror", {"blimp", *ROWS}),
    "glue.files": (".", NOTHING),
    "glue.revision": ("v2", {"rows"}),
    "glue.allow_partial": (False, NOTHING),
    "glue.max_examples": (90, ROWS),
    "glue.max_evaluation_examples": (40, {"blimp", *ROWS}),
    "glue.max_length": (32, {"rows", "blimp"}),
    "glue.epochs": (1, {"scores"}),
    **{
        f"glue.{key}": (value, SCORES)
        for key, value in {
            **{"batch_size": 8, "learning_rate": 1e-4, "warmup_ratio": 0.2, "weight_decay": 0.1, "adam_epsilon": 1e-6},
            **{"gradient_clip": 2.0, "dropout": 0.2},
        }.items()
    },
    "glue.keep_finetuned": (False, NOTHING),
    "glue.robustness.files": (".", NOTHING),
    "glue.robustness.sets": (["hans"], {"noisy rows"}),
    "glue.robustness.noise": ([0.2], {"noisy rows"}),
    "glue.robustness.noise_kinds": (["drop"], {"noisy rows"}),
    "suites.superglue.epochs": (3, {"superglue scores"}),
    "suites.superglue.max_length": (64, {"superglue rows"}),
    **{f"suites.squad2.{key}": (3, NOTHING) for key in ("epochs", "batch_size", "learning_rate")},  # not in the sweep
    "suites.squad2.max_length": (64, NOTHING),
    **{f"rates.{name}": (7.0, NOTHING) for name in ("gpu_flops", "gpu_layer_seconds", "core_flops", "job_seconds")},
    "rates.core_layer_seconds": (7.0, NOTHING),
    "operators": ({"wide": {"class": "shared", "start": "wide"}}, NOTHING),  # which the sweep does not have
    "sizes": (
        {"deep": {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 64}},
        NOTHING,
    ),
    "tasks": (
        {"own": {"train": "a", "validation": "b", "columns": ["x"], "metric": "f1", "labels": ["n", "y"]}},
        NOTHING,
    ),
    "texts": (
        {"copies": {"source": "copying", "vocabulary": None, "sequence_length": 16, "validation_sequences": 64}},
        NOTHING,
    ),
    "sweep.grids": ({"one": {"pretrain_seeds": [7]}}, {*TRAINED, *ROWS, "noisy rows", "blimp", "probes"}),  # no scores
}
# Axes of the sweep: more of them adds folders, and changes none but those that describe all models together.
MORE = {
    "sweep.hosts": ["encoder", "decoder"],
    "sweep.sizes": ["tiny", "small"],
    "sweep.attention": ["original", "shared", "pairwise"],
    "sweep.contrasts": [["shared", "original"]],
    "sweep.pretrain_seeds": [1, 2, 3],
    "sweep.finetuned_pretrain_seeds": [1, 2],
    "sweep.finetune_seeds": [1, 2, 3],
    "sweep.suites": ["glue", "superglue", "blimp", "squad2"],
    "sweep.tasks": ["mnli", "rte", "cb", "cola"],
    "sweep.untrained": True,
    "sweep.anatomy": False,
    "sweep.probes": [],
    "sweep.curve.sizes": ["tiny"],
    "sweep.curve.finetune_seeds": [2],
    "sweep.curve.steps": {"tiny": [200]},
}


@pytest.fixture
def start(root, folder, monkeypatch):
    """The experiment of BASE with changes; `set` is one key."""
    demo = merge(read_yaml(root / "workflow/defaults.yaml"), read_yaml(root / "workflow/scales/demo.yaml"))
    for name in "abcd":
        Path(name).write_text(f"{name}\n")
    Path("en").mkdir()
    Path("own_optimizer.py").write_text("def sgd(parameters, settings):\n    pass\n")
    monkeypatch.syspath_prepend(str(folder))
    forget()

    def start(*changes: dict, **keys) -> Experiment:
        config = json.loads(json.dumps(merge(demo, BASE)))
        for change in (*changes, *(nested(key, value) for key, value in keys.items())):
            config = merge(config, change)
        return Experiment(checked(config))

    return start


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
    scores = {"finetune": "scores", "robustness": "noisy scores", "judge": "judged pairs"}
    kinds = {"shards": {experiment.shards}, "parts": {experiment.parts_folder}, "pairs": {experiment.pairs}}
    kinds |= {name: set() for name in (*RUNS, *scores.values(), *ROWS, *SCORES, "noisy rows", "blimp")}
    for run in experiment.runs:
        kinds[run.host].add(experiment.runs[run])
    for name in experiment.rows:
        name_of_kind = {"robustness": "noisy rows", "superglue": "superglue rows", "blimp": "blimp"}
        kinds[name_of_kind.get(name.split("-")[-2], "rows")].add(name)
    for file, score in experiment.scores.items():
        kind = score.scoring.kind
        kinds["superglue scores" if score.scoring.suite == "superglue" else scores[kind]].add(file)
    measured = {kind: {*files} for kind, files in experiment.measured.items()}
    return {**kinds, **measured, "report": {experiment.key}}


def with_all_below(kinds: set[str]) -> set[str]:
    """These kinds of key and those that they are part of; every one is part of the report's."""
    reached, new = set(), set(kinds)
    while new:
        reached |= new
        new = {below for kind in new for below in BELOW.get(kind, ())} - reached
    return reached | {"report"} if reached else reached


def changed_kinds(before: Experiment, after: Experiment) -> set[str]:
    old, new = keys_of(before), keys_of(after)
    return {kind for kind in old if old[kind] != new[kind]}


def test_every_key_of_the_configuration_has_its_effect_declared(root):
    assert {*leaves(read_yaml(root / "workflow/defaults.yaml"))} == {*EFFECTS, *MORE}


def test_a_changed_setting_changes_exactly_the_keys_below_it(start):
    before = start()
    changed = {key: changed_kinds(before, start(nested(key, value))) for key, (value, _) in EFFECTS.items()}
    assert changed == {key: with_all_below(kinds) for key, (_, kinds) in EFFECTS.items()}


@pytest.mark.parametrize("key", MORE)
def test_more_of_an_axis_keeps_the_folders_that_are_there(start, key):
    less, more = start(), start(nested(key, MORE[key]))
    if key in ("sweep.hosts", "sweep.anatomy", "sweep.probes"):  # whose values above are fewer
        less, more = more, less
    kept = {file: value for file, value in less.settings.items() if "/speeds-" not in file and "/anatomy-" not in file}
    assert len(kept) > 20 and kept.items() <= more.settings.items()


def test_the_spelling_of_a_configuration_changes_no_key(start, root):
    experiment = start()
    whole = experiment.config

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


def assert_changed(before: dict, after: dict, kinds: set[str]) -> None:
    assert {kind for kind in before if before[kind] != after[kind]} == with_all_below(kinds)


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
    "original/train.tsv": (
        {"glue": {"source": "files", "files": "original"}, "sweep": {"tasks": ["mnli"], "suites": ["glue"]}},
        {"rows"},
    ),
    "behind/a/link.tsv": (
        {"glue": {"source": "files", "files": "linked"}, "sweep": {"tasks": ["mnli"], "suites": ["glue"]}},
        {"rows"},
    ),
    "sets/train.tsv": ({"glue": {"robustness": {"files": "sets", "sets": ["hans"]}}}, {"noisy rows"}),
    "ut1/blacklists.tar.gz": ({"corpus": {"blocklist_url": "ut1"}}, {"parts"}),
    "b": ({"parallel": TEXT_PAIRS}, {"pairs"}),
    "theirs/google-bert/bert-base-uncased/vocab.txt": (MIRROR, {"parts", "blimp", *ROWS}),
    "theirs/oscar-corpus/OSCAR-2301/en_meta/checksum.sha256": (MIRROR, {"parts"}),  # the parts' text follows from it
    "theirs/oscar-corpus/harmful-kenlms/en.arpa": (MIRROR, {"parts"}),
    "theirs/ut1/blacklists.tar.gz": (MIRROR, {"parts"}),
}


@pytest.mark.parametrize("file", CONTENTS)
def test_files_count_by_their_content(start, file):
    changes, kinds = CONTENTS[file]
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path("linked").mkdir()
    Path("linked/MNLI").symlink_to(Path("behind/a").absolute())
    Path(file).write_text("a")
    before = keys_of(start(changes))
    os.utime(file, (1, 1))
    assert keys_of(start(changes)) == before
    Path(file).write_text("b")
    assert_changed(before, keys_of(start(changes)), kinds)


def test_a_request_has_the_same_options_whatever_the_order_of_tasks(start):
    """Snakemake computes again what has other parameters: two experiments would score a checkpoint in turns."""
    requests = []
    for tasks in (["mnli", "rte", "cb"], ["cb", "rte", "mnli"]):
        experiment = start({"sweep": {"tasks": tasks}})
        requests.append({file: score.options for file, score in experiment.scores.items()})
    assert requests[0] == requests[1]


def own_task(start, **files) -> dict[str, set[str]]:
    definition = {"columns": ["text"], "metric": "f1", "labels": ["no", "yes"], **files}
    tasks = {"tasks": {"irony": definition}, "sweep": {"tasks": ["rte", "irony"]}}
    return keys_of(start(tasks))


def test_a_task_of_the_users_own_counts_by_content_and_changes_no_other_rows(start):
    for name in ("train", "dev"):
        Path(f"{name}.csv").write_text(f"text,label\n{name},no\n")
    before = own_task(start, train="train.csv", validation="dev.csv")
    shutil.copy("train.csv", "renamed.csv")
    assert own_task(start, train="renamed.csv", validation="dev.csv") == before
    Path("train.csv").write_text("text,label\nedited,no\n")
    after = own_task(start, train="train.csv", validation="dev.csv")
    assert_changed(before, after, {"rows"})
    rte = [name for name in before["rows"] if name.startswith("glue")]
    assert rte and {*rte} <= after["rows"]


def test_a_wrong_column_of_an_own_csv_is_refused_at_the_start(start):
    Path("train.csv").write_text("texts,label\na,no\n")
    Path("dev.csv").write_text("text,label\nb,no\n")
    with pytest.raises(DataError, match=r"train\.csv: no column 'text'"):
        own_task(start, train="train.csv", validation="dev.csv")


def test_a_size_with_rotary_positions_is_another_model(start):
    shape = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 64}
    sweep = {"sizes": ["deep"], "anatomy": False, "attention": ["original"]}
    folders = {
        start(sizes={"deep": {**shape, **more}}, sweep=sweep).runs[Run("deep", "original", 1)]
        for more in ({}, {"position_embedding_type": "rotary"}, {"position_embedding_type": "learned"})
    }
    assert len(folders) == 2


@pytest.mark.parametrize("kind", ["settings.json", "run.json"])
def test_other_settings_under_the_same_key_are_refused(start, kind):
    experiment = start()
    experiment.write()
    start()
    file = Path(next(file for file in experiment.settings if file.endswith(kind)))
    write_json(file, {**json.loads(file.read_text()), "more": 1})
    with pytest.raises(ConfigError, match=f"{file}: holds other settings under the same key"):
        start().write()


def test_a_moved_project_changes_no_key_of_its_stand_ins(start, monkeypatch, tmp_path_factory):
    """Its paths do not begin at the root either: a folder of results may be copied."""
    embedded = start(source="embedded")
    moved = tmp_path_factory.mktemp("elsewhere") / "demo"
    shutil.copytree(sources.DEMO, moved)
    monkeypatch.setattr(sources, "DEMO", moved)
    assert start(source="embedded").record == embedded.record
    assert str(Path.cwd()) not in json.dumps(embedded.record) and str(sources.DEMO) not in json.dumps(embedded.record)
    assert all(file.startswith("results/") for file in embedded.settings)
