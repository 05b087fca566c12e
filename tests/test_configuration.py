"""The configuration: the paper's values, types, values that follow from it, and a line for every mistake."""

import copy
import os
import re
from typing import get_args

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from symbert.configuration import (
    Configuration,
    FinetuneKeys,
    GlueSettings,
    Listed,
    MinimalPairSettings,
    PackSettings,
    PretrainSettings,
    Settings,
    SuiteKeys,
    Swept,
    TaskLimits,
    custom_texts,
    merge,
    non_defaults,
    protocol_of,
    resolve,
    root_of,
    typed,
)
from symbert.errors import ConfigError, MissingInputError
from symbert.experiment.given import read_yaml
from symbert.experiment.project import read_config
from symbert.files import hash_of, known_sha256, sha256_of
from symbert.glue import tasks
from symbert.operators import operators_of
from symbert.sizes import shapes_of


@pytest.fixture
def defaults(root):
    """The configuration without a scale."""
    return read_yaml(root / "workflow/defaults.yaml")


def custom_files(config, pattern, **corpus):
    return merge(config, {"corpus": {"source": "files", "files": str(pattern), **corpus}})


def test_the_configuration_holds_the_papers_values(defaults):
    """§3.3, §3.4 and appendix A of arXiv 2406.06366, and the authors' code where the paper is silent."""
    config = resolve(defaults)
    pretrain, glue, corpus = config.pretrain, config.glue, config.corpus
    assert (pretrain.steps, pretrain.batch_size, pretrain.warmup_steps) == (200_000, 256, 10_000)
    assert (pretrain.learning_rate, pretrain.adam_epsilon, pretrain.mask_probability) == (1e-4, 1e-12, 0.15)
    assert pretrain.steps * pretrain.batch_size * corpus.pack.sequence_length == 26_214_400_000
    assert (glue.epochs, glue.batch_size, glue.learning_rate, glue.warmup_ratio) == (5, 16, 1e-5, 0.1)
    assert (corpus.filter.min_harmful_perplexity, corpus.filter.max_harmful_perplexity) == (5.0, 1e5)
    assert len(corpus.filter.blocked_categories) == 11
    assert len(config.sweep.curve.steps["base"]) == 18 and config.sweep.finetune_seeds == [1, 2, 3, 4, 5]


def test_the_users_file_and_its_examples_are_valid(root):
    examples = re.findall("^# ([a-z]+: .*?)(?:  +#.*)?$", (root / "config.yaml").read_text(), re.M)
    read_config(root)
    keys = [key for example in examples for key in yaml.safe_load(example)]
    assert len(keys) >= 3 and {*keys} <= {*Configuration.__struct_fields__}


def test_the_experiment_is_named_after_scale_and_source_unless_named(config):
    changes = {"demo-embedded": {}, "mine": {"experiment": "mine"}, "demo-embedded-hub": {"glue": {"source": "hub"}}}
    assert [resolve(merge(config, change)).experiment for change in changes.values()] == [*changes]


def test_a_suite_is_fine_tuned_as_glue_but_for_its_own_keys(defaults):
    """One operator is compared under one protocol per suite: what its publisher says, and else the paper's."""
    own = merge(defaults, {"glue": {"learning_rate": 3e-4, "epochs": 7}, "suites": {"superglue": {"batch_size": 4}}})
    own = resolve(own)
    glue, superglue = (non_defaults(protocol_of(own, suite, GlueSettings)) for suite in ("glue", "superglue"))
    assert superglue == {**glue, "epochs": 10, "batch_size": 4} and glue["epochs"] == 7
    assert [protocol_of(own, suite, TaskLimits).max_length for suite in ("glue", "superglue")] == [128, 256]


def test_the_users_files_are_parts_and_ut1_and_the_rest_come_from_elsewhere(config, tmp_path):
    """Of any kind that is read, C4's own names and folders of datasets among them; those of other kinds are refused."""
    names = ["CC/000_1.jsonl.zst", "CC/x.v2.jsonl.gz", "a.parquet", "b.ndjson", "c4-train.00000-of-01024.json.gz"]
    names += ["d.json.zst", "f.txt", "g.csv.gz", "h.tsv"]
    for name in [*names, "saved/state.json", "saved/data.arrow", "both/train/state.json", "both/dataset_dict.json"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "SHA256SUMS").write_text("# which may lie beside them\n")
    for pattern in ("**", "**/*"):
        own = resolve(custom_files(config, tmp_path / pattern))
        assert custom_texts(own) == sorted(f"{tmp_path}/{name}" for name in (*names, "both", "saved"))
    assert (root_of(own, "corpus"), root_of(replace(own, mirror="."), "corpus")) == (None, ".")
    for name in ("notes.md", "table.xlsx", "b.jsonl.bz2", "c.JSONL"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match="4 of 15 files that match .* cannot be read"):
        custom_texts(own)


def test_a_name_with_brackets_is_no_pattern_and_a_folder_and_a_link_to_nothing_are_said(config, tmp_path):
    """`book [1].txt` matched no file, as did a folder, and beside files a folder was left out; a link that git-annex
    leaves was "no .txt"."""
    for name in ("book [1].txt", "book 1.txt", "texts/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert custom_texts(typed(custom_files(config, tmp_path / "book [1].txt"))) == [f"{tmp_path}/book [1].txt"]
    assert custom_texts(typed(custom_files(config, tmp_path / "book [12].txt"))) == [f"{tmp_path}/book 1.txt"]
    with pytest.raises(MissingInputError, match=r"texts is a folder; .*/texts/\*\.txt"):
        custom_texts(typed(custom_files(config, f"{tmp_path}/texts/")))
    (tmp_path / "spark.parquet").mkdir()
    (tmp_path / "spark.parquet/part-0.parquet").touch()
    (tmp_path / "b.parquet").touch()
    with pytest.raises(MissingInputError, match=r"spark\.parquet is a folder; .*/spark\.parquet/\*\.parquet"):
        custom_texts(typed(custom_files(config, tmp_path / "*.parquet")))
    assert len(custom_texts(typed(custom_files(config, tmp_path / "**/*.parquet")))) == 2
    (tmp_path / "texts/link.txt").symlink_to(".git/annex/objects/nothing")
    with pytest.raises(ConfigError, match=r"1 of 2 files .* absent .*, as .*link\.txt; get"):
        custom_texts(typed(custom_files(config, tmp_path / "texts/*")))


def test_a_name_that_no_job_can_be_given_is_told_before_the_start_and_harms_no_folder(config, tmp_path, monkeypatch):
    """Of bytes that are not UTF-8, Snakemake ended with a traceback; of braces it asked for a wildcard; a digest of a
    folder with such a name was a bug of ours."""
    own = typed(custom_files(config, tmp_path / "**/*.txt"))
    named = [tmp_path / name for name in ("right.txt", os.fsdecode(b"caf\xe9.txt"), os.fsdecode(b"\xe9/a.txt"))]
    for file in named:
        file.parent.mkdir(exist_ok=True)
        file.write_text("text")
    with pytest.raises(ConfigError, match=r"'corpus\.files': 2 of 3 files have names .* not UTF-8, as .*; rename"):
        custom_texts(own)
    (tmp_path / "{part}").mkdir()
    with pytest.raises(ConfigError, match=r"'mirror': .*\{part\}: has braces.*; rename"):
        resolve(merge(config, {"source": "mirror", "mirror": str(tmp_path / "{part}")}))
    task = {"train": "a.csv", "validation": "{b}.csv", "columns": ["text"], "metric": "accuracy", "labels": ["x", "y"]}
    with pytest.raises(ConfigError, match=r"'tasks\.mine\.validation': \{b\}\.csv: has braces.*; rename"):
        resolve(merge(config, {"tasks": {"mine": task}}))
    monkeypatch.chdir(tmp_path)
    for name in ("{part}.txt", "-a.txt"):
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match=rf"1 of 1 files have names with .*{re.escape(name)}; rename"):
            custom_texts(typed(custom_files(config, name)))
    assert known_sha256(tmp_path) == sha256_of(tmp_path)


def test_a_folder_of_text_that_is_not_there_is_told_so(config, folder):
    """Without the folder, `crawl/**` matched the folder itself, "which cannot be read"."""
    with pytest.raises(ConfigError, match=r"'corpus\.files'"):
        resolve(merge(config, {"corpus": {"source": "files"}}))
    for pattern in ("crawl/**", "crawl/deep/*.txt", f"{folder}/crawl/**/*.txt", f"{folder}/*.txt"):
        with pytest.raises(MissingInputError, match=r"'corpus\.files'|no file matches .*/\*\.txt"):
            resolve(custom_files(config, pattern))


def test_a_tilde_is_the_home_folder_and_not_a_letter(config, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.jsonl").touch()
    glue = {"robustness": {"files": "~/ood"}}
    own = resolve(merge(custom_files(config, "~/*.jsonl"), {"mirror": "~", "glue": glue}))
    assert custom_texts(own) == [f"{tmp_path}/own.jsonl"]
    assert (own.mirror, own.glue.robustness.files) == (str(tmp_path), f"{tmp_path}/ood")
    paper = resolve(merge(config, {"corpus": {"blocklist_url": "https://ut1.example//a/~b"}}))
    assert paper.corpus.blocklist_url == "https://ut1.example//a/~b"


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6), st.randoms())
def test_a_hash_ignores_key_order_and_sees_every_value(values, random):
    shuffled = list(values.items())
    random.shuffle(shuffled)
    assert hash_of(dict(shuffled)) == hash_of(values)
    for key in values:
        assert hash_of({**values, key: values[key] + 1}) != hash_of(values)


def test_texts_of_the_command_line_become_the_values_that_their_types_want(config):
    pretrain = {"steps": "3000", "learning_rate": "1.0e-3", "dropout": "1e-1", "schedule_steps": "null"}
    texts = {"pretrain": pretrain, "corpus": {"keep_raw": "true"}}
    texts |= {
        "architectures": {"decoder": {"steps": "5000", "schedule_steps": "null"}},
        "suites": {"squad2": {"epochs": "3"}},
    }
    sweep = {"finetune_seeds": ["1", "2", "1"], "learning_rate": ["1e-3", "0.001"]}
    told = resolve(merge(config, {**texts, "sweep": sweep}))
    values = {key: getattr(told.pretrain, key) for key in pretrain}
    assert values == {"steps": 3000, "learning_rate": 1e-3, "dropout": 0.1, "schedule_steps": None}
    assert told.corpus.keep_raw is True and told.architectures["decoder"] == {"steps": 5000, "schedule_steps": None}
    assert told.suites["squad2"]["epochs"] == 3
    resolve(merge(config, {"sweep": {"finetune_seeds": ["1", str(2**63 - 1)]}, "pretrain": {"gradient_clip": "1e38"}}))
    assert told.sweep.finetune_seeds == [1, 2] and told.sweep.learning_rate == [1e-3]


DEEP = {"num_hidden_layers": 12, "hidden_size": 48, "num_attention_heads": 2, "intermediate_size": 256}
RANKED = {"class": "model.wrong_operators:Demanding", "rank": 8}
IRONY = {"train": ".", "validation": ".", "columns": ["text"], "labels": ["no", "yes"], "metric": "accuracy"}
MISCOUNTED = "model.wrong_operators:Miscounted"
MISTAKES = {  # by the words that a line must have: the keys, and the nearest word where there is one
    # Keys and types.
    "'sorce' 'source'": {"sorce": "hub"},
    "'source' 'miror' 'mirror'": {"source": "miror"},
    "'sweep.architectures' 'decoder'?": {"sweep": {"architectures": ["encoder", "Decoder"]}},
    "'architectures' 'encoder' 'pretrain'": {"architectures": {"encoder": {"steps": 5}}},
    "pretrain: {steps:": {"pretrain.steps": 5},  # as the docs write it
    "'pretrain' 1 point": {"pretrain": {"dropout": 0, 1: None}},  # {dropout: 0,1}
    "'glue.keep_finetuned' true false": {"glue": {"keep_finetuned": "yes"}},
    "'sweep.attention' [a, b]": {"sweep": {"attention": "original"}},
    "'pretrain.schedule_steps' number null": {"pretrain": {"schedule_steps": "None"}},
    "'title' quotes": {"title": {"Gated": "a test"}},  # --config title='Gated: a test'
    "'source' 'files' 'corpus.source'": {"source": "files"},
    "'source' 'dataset' 'corpus.source'": {"source": "dataset"},
    "'pretrain' {key: value}": {"pretrain": "steps=5"},
    "'sweep.attention' 'symmetric'": {"sweep": {"attention": ["original", "symetric"]}},
    "'pretrain.learning_rate'": {"pretrain": {"learning_rate": "1e-4x"}},
    "'stepz' 'pretrain' 'steps'": {"pretrain": {"stepz": 1}},
    # Names of before.
    "'recipe' 'compile'?": {"recipe": "faithful"},
    "'hosts' 'sweep' 'architectures'?": {"sweep": {"hosts": ["encoder"]}},
    "'tasks.irony' 'kind' 'problem_type'?": {"tasks": {"irony": {**IRONY, "kind": "regression"}}},
    "'start' 'init_scale'?": {"operators": {"wider": {"class": "original", "start": "wide"}}},
    "'sweep.text' 'texts'": {"sweep": {"text": ["documentation"]}},
    "'corpus.files' brackets": {"corpus": {"source": "files", "files": ["a.txt"]}},
    "'corpus.dataset.path' length": {"corpus": {"source": "dataset", "dataset": {"path": ""}}},
    "'epochs' 'glue' move": {"epochs": 3},
    "'corpus.filter.rules' 'perplexty' 'perplexity'": {"corpus": {"filter": {"rules": ["categories", "perplexty"]}}},
    "'experiment' letters": {"experiment": "../elsewhere"},
    "'experiment' digits": {"experiment": "mine\n"},
    "'suites.superglue.epochs'": {"suites": {"superglue": {"epochs": 0}}},
    # Numbers that no job can hold: those of jobs have 64 bits, those of tensors 32.
    "'sweep.pretrain_seeds[0]' 9223372036854775807": {"sweep": {"pretrain_seeds": [2**64]}},
    "'sweep.finetune_seeds[1]' 9223372036854775807": {"sweep": {"finetune_seeds": [1, 2**63]}},
    "'pretrain.steps' 9223372036854775807": {"pretrain": {"steps": 2**70}},
    "'pretrain.gradient_clip' 1e+38": {"pretrain": {"gradient_clip": "inf"}},
    "'glue.learning_rate' > 0": {"glue": {"learning_rate": float("nan")}},
    "'corpus.parts' 100000": {"corpus": {"parts": 10**9}},
    # Values that do not fit together.
    "'experiment' scores": {"experiment": "scores"},
    "'sweep.curve.steps' 301 'pretrain.save_every'": {"sweep": {"curve": {"steps": {"tiny": [301]}}}},
    "'sweep.curve.sizes' 'base' 'sweep.sizes'": {"sweep": {"curve": {"sizes": ["base"]}}},
    "'sweep.curve.steps' 'pretrain.steps'": {"pretrain": {"steps": 300, "warmup_steps": 5}},
    "'sweep.contrasts' 'base' 'sweep.attention'": {"sweep": {"contrasts": [["pairwise", "base"]]}},
    "'sweep.finetuned_pretrain_seeds' 9 'sweep.pretrain_seeds'": {"sweep": {"finetuned_pretrain_seeds": [9]}},
    "'suites.blimp' epochs": {"suites": {"blimp": {"epochs": 3}}},
    "'corpus.filter.min_harmful_perplexity' 200000 lower": {"corpus": {"filter": {"min_harmful_perplexity": 2e5}}},
    "'mirror'": {"source": "mirror"},
    "'corpus.dataset' null path owner/name": {"corpus": {"source": "dataset"}},
    "'glue.robustness.files'": {"glue": {"robustness": {"sets": ["hans"]}}},
    # Trainings, of the encoder and of another architecture by its own keys.
    "'pretrain.warmup_steps' 'pretrain.steps'": {"pretrain": {"steps": 50, "warmup_steps": 51}},
    "'pretrain.schedule_steps' 'pretrain.steps' null": {"pretrain": {"schedule_steps": 2399}},
    "'pretrain.decay_steps' 'pretrain.warmup_steps' 'pretrain.steps'": {
        "pretrain": {"steps": 300, "warmup_steps": 200, "decay_steps": 101}
    },
    "'pretrain.decay_steps' 'pretrain.warmup_steps' 'pretrain.schedule_steps'": {
        "pretrain": {"schedule_steps": 2500, "warmup_steps": 200, "decay_steps": 2301}
    },
    "'pretrain.processes' 'pretrain.nodes'": {"pretrain": {"processes": 3, "nodes": 2}},
    "'pretrain.together' 4 'pretrain.processes' 2": {"pretrain": {"together": 4, "processes": 2}},
    "'pretrain.schedule_steps' 'architectures.decoder.steps'": {
        **{"pretrain": {"schedule_steps": 2400}, "architectures": {"decoder": {"steps": 5000}}},
        "sweep": {"architectures": ["encoder", "decoder"]},
    },
    "'architectures.decoder.warmup_steps' 'architectures.decoder.steps'": {
        **{"architectures": {"decoder": {"steps": 60, "warmup_steps": 99}}, "sweep": {"architectures": ["decoder"]}}
    },
    # Things of the user's own.
    "'sizes.deep' 'num_attention_heads' 'hidden_size'": {"sizes": {"deep": {**DEEP, "num_attention_heads": 5}}},
    "'sizes.deep' 'layers' 'num_hidden_layers'": {"sizes": {"wide": DEEP, "deep": {**DEEP, "layers": 3}}},
    "'sizes' 'tiny'": {"sizes": {"tiny": DEEP}},
    "'tasks.irony' labels": {"tasks": {"irony": {**IRONY, "labels": None}}},
    "'tasks.irony' 'labels' a": {"tasks": {"irony": {**IRONY, "labels": ["a", "a"]}}},
    "'tasks.irony.metric' 'acuracy' 'accuracy'": {"tasks": {"irony": {**IRONY, "metric": "acuracy"}}},
    "'tasks.irony' 'metric' f1": {"tasks": {"irony": {**IRONY, "labels": [0, 1, 2], "metric": "f1"}}},
    "'tasks.irony.metric[1]' 'F1' 'f1'": {"tasks": {"irony": {**IRONY, "metric": ["accuracy", "F1"]}}},
    "'tasks.irony.columns'": {"tasks": {"irony": {**IRONY, "columns": ["a", "b", "c"]}}},
    "'tasks' 'rte'": {"tasks": {"rte": IRONY}},
    "'tasks' 'a/b'": {"tasks": {"a/b": IRONY}},
    "'sweep.tasks' 'irony'": {"tasks": {"irony": IRONY}, "sweep": {"tasks": ["irny"]}},
    "'operators.ranked' class": {"operators": {"ranked": {"rank": 8}}},
    "'original' OriginalAttention": {"operators": {"original": RANKED}},
    "no_such_module": {"sweep": {"attention": ["no_such_module:Gated"]}},
    "'demanding' Demanding": {"operators": {"demanding": RANKED}, "sweep": {"attention": [RANKED["class"]]}},
}


def test_a_mistake_is_one_line_that_names_its_keys(config):
    untold = {}
    for words, change in MISTAKES.items():
        with pytest.raises(ConfigError) as refused:
            resolve(merge(config, change))
        line = str(refused.value)
        if "\n" in line or refused.value.exit_code != 64 or not all(word in line for word in words.split()):
            untold[words] = line
    assert untold == {}


def test_the_sweep_has_names_and_the_sections_what_they_stand_for(config):
    """Two operators, a size and a task that this project does not have."""
    sweep = {
        "sizes": ["tiny", "deep"],
        "attention": ["original", "ranked", MISCOUNTED, MISCOUNTED],
        "tasks": ["rte", "irony"],
    }
    curve = {"sizes": ["deep"], "steps": {"deep": [300]}}
    texts = {key: str(value) for key, value in DEEP.items()}  # as the command line gives them
    own = {
        "operators": {"ranked": {**RANKED, "rank": "8", "groups": ["2", "2"]}},
        "sizes": {"deep": texts},
        "tasks": {"irony": IRONY},
    }
    own = resolve(merge(config, {**own, "sweep": {**sweep, "curve": curve}}))
    assert own.sweep.attention == ["original", "ranked", "miscounted"]
    operators, deep = operators_of(own.operators), shapes_of(own.sizes)["deep"]
    assert operators["ranked"].arguments == {"rank": 8, "groups": [2, 2]}
    assert operators["miscounted"].path == MISCOUNTED
    assert deep.num_hidden_layers == 12
    assert deep.initializer_range == pytest.approx(0.02 * 4), "a quarter of base's root of the width"
    assert tasks.tasks_of(own.tasks)["irony"].scores == {"validation": "irony"} and "irony" not in tasks.GLUE
    assert resolve(to_builtins(own)) == own


def test_what_stands_in_a_file_or_a_dictionary_stays_as_it_was_given(config):
    """The dictionary itself got the names of the sweep's operators, so that a second reading saw another."""
    given = merge(config, {"sweep": {"attention": ["original", MISCOUNTED]}, "pretrain": {"steps": "2400"}})
    before = copy.deepcopy(given)
    resolved = resolve(given)
    assert given == before and resolve(given) == resolved == resolve(to_builtins(resolved))


def test_keys_and_words_that_are_written_out_twice_are_the_same():
    """A type checker sees no fields of classes that are made."""

    def types(*kinds: type[Settings]) -> dict[str, object]:
        return {field.name: field.type for kind in kinds for field in msgspec.structs.fields(kind)}

    swept = {name: Listed[kind] for name, kind in types(PackSettings, PretrainSettings).items()}
    assert types(Swept) == {"text": Listed[str], **swept}
    assert types(SuiteKeys) == types(FinetuneKeys, TaskLimits, MinimalPairSettings)
    assert get_args(tasks.Metric) == tasks.METRICS_OF_CLASSES + tasks.METRICS_OF_GRADES
