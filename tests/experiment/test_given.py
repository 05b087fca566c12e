"""Files of settings and words of the command line: what Snakemake makes of them, and what would be lost in silence."""

import json
import shutil
from functools import reduce
from pathlib import Path

import pytest
import yaml
from msgspec import to_builtins
from snakemake.cli import parse_config
from snakemake.common.configfile import load_configfile

from symbert.configuration import merge
from symbert.errors import ConfigError, DataError, UsageError
from symbert.experiment.given import read_words, read_yaml
from symbert.experiment.layout import Experiment
from symbert.experiment.profile import check_profiles
from symbert.experiment.project import (
    checked,
    configured_scale,
    open_experiment,
    read_chosen,
    read_experiment,
    readable,
)
from symbert.glue.tasks import tasks_of


@pytest.mark.parametrize(
    "words",
    [
        ["experiment=2024_06_01", "title=007", "scale=1e5", "source=-3.5", "compile=nan_x"],
        ["experiment=True", "title=true", "mirror=", "source=null"],
        ["pretrain={steps: 5, batch_size: 4}", "pretrain={steps: 0340}", "glue={robustness: {noise: [0.1]}}"],
        ["glue={robustness: {noise_kinds: [swap]}}", "glue={robustness: {noise: []}}", "glue={epochs: 2}"],
        ["pretrain={steps: 5}", "pretrain=null", "architectures=null", "architectures={decoder: {steps: 5}}"],
        ["title='quoted'", 'experiment="007"', "mirror='a b'", "title=a: b: c", "source={a", "compile=a=b"],
        ["experiment= 12 ", "title=1_0.5", "mirror=!!python/object/apply:os.getcwd []", "sweep={a: 'x', b: no}"],
    ],
)
def test_words_of_config_are_the_values_that_snakemake_reads(words):
    """`experiment=007` was a text for `symbert plan`, and the second of two `pretrain=` took the place of the first."""
    assert read_words(words) == parse_config(words)


def test_a_file_of_settings_is_what_snakemake_reads(tmp_path):
    texts = {
        "yaml": "a: {b: [1, 1.0e-3, 1e-3, 1_000, 0x1F, 0], c: 2024-06-01}\nd: &x {e: no, f: ~}\ng: {<<: *x, f: 'a'}\n",
        "json": '{\n\t"a": {"b": [1e-3, 5], "c": "\\ud83d\\ude00\\/"}\n}',
        "mark": "\ufeffa: 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_yaml(tmp_path / name) == load_configfile(tmp_path / name), name


LOST = {  # by the words that the line must have
    "line 3 'pretrain'": "pretrain: {steps: 100}\nsweep: {}\npretrain: {learning_rate: 0.01}\n",
    "line 4 'steps'": "pretrain:\n  steps: 1\n  batch_size: 2\n  steps: 3\n",
    "line 1 '<<'": "a: {<<: {b: 1}, <<: {b: 2}}",
    "line 2 0340 224": "pretrain:\n  steps: 0340\n",
    "line 1 007 '007'": "experiment: 007\n",
    "line 1 12:30:00 45000": "title: 12:30:00\n",
    "line 1 1:30.5": "title: 1:30.5\n",
    "line 1 .inf": "pretrain: {gradient_clip: .inf}\n",
    "line 1 -.INF": "pretrain: {gradient_clip: -.INF}\n",
    "line 1 .nan": "pretrain: {gradient_clip: .nan}\n",
    "'a'": '{"b": {"a": 1, "a": 2}}',
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": -Infinity}',
}


@pytest.mark.parametrize("words", LOST)
def test_what_yaml_would_lose_in_silence_is_an_error_with_its_line(words, tmp_path):
    """Of two sections `pretrain` the first was dropped, and 0340 was 224."""
    file = tmp_path / "mine.yaml"
    file.write_text(LOST[words])
    with pytest.raises(ConfigError) as refused:
        read_yaml(file)
    line = str(refused.value)
    assert line.startswith(str(file)) and "\n" not in line and all(word in line for word in words.split()), line


def test_a_date_of_no_calendar_and_a_word_without_a_value_are_no_bugs(tmp_path):
    (tmp_path / "date.yaml").write_text("title: 2024-13-45\n")
    with pytest.raises(DataError, match=r"date\.yaml"):
        read_yaml(tmp_path / "date.yaml")
    with pytest.raises(UsageError, match="parts"):
        read_words(["parts"])


@pytest.mark.parametrize("option", ["--config", "-C", "--configfile", "--config="])
def test_a_second_config_does_not_take_the_place_of_the_first_in_silence(option, root, config, monkeypatch, capsys):
    """Of `--config experiment=mine --config scale=laptop` Snakemake reads the last alone."""
    once = ["snakemake", "--cores", "2", option, "a", "b"]
    monkeypatch.setattr("sys.argv", once)
    open_experiment(config, [])
    monkeypatch.setattr("sys.argv", [*once, *once[3:]])
    with pytest.raises(UsageError, match="twice"):
        read_chosen(root, None, None, None)
    with pytest.raises(SystemExit):
        open_experiment(config, [])
    assert "twice" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--config", "pretrain={steps: 5, steps: 6}"], ["--config=a={b: {c: 1, c: 2}}"]])
def test_a_key_twice_in_a_word_of_config_is_refused(words, root, monkeypatch):
    """Of `--config 'pretrain={steps: 5, steps: 6}'` the last counted, in silence."""
    monkeypatch.setattr("sys.argv", ["snakemake", "--cores", "2", *words])
    with pytest.raises(UsageError, match=r"--config \w+, line 1: the key '(steps|c)' stands there a second time"):
        read_chosen(root, None, None, None)
    with pytest.raises(UsageError, match="the key 's' stands there a second time"):
        read_words(["p={s: 5, s: 6}"])


NAMES = ("2024_06_01", "007", "1e5", "12", "True")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_looks_like_a_number_is_written_in_quotes_in_a_file(name, root, tmp_path):
    """No quotes help on the command line, for Snakemake removes them: the remedy names a file."""
    with pytest.raises(ConfigError, match=r"'experiment': .*quotes, in config\.yaml"):
        read_chosen(root, None, None, [f'experiment="{name}"'])
    (tmp_path / "own.yaml").write_text(f"experiment: {json.dumps(name)}\n")
    assert read_chosen(root, None, [tmp_path / "own.yaml"], None).experiment == name


ARGUMENTS = {  # of an operator: in a file, and read
    "mode: '1'": "1",
    "mode: 1": 1,
    "mode: ['1', 2, x]": ["1", 2, "x"],
    "mode: 'true'": "true",
    "mode: 'null'": "null",
    "mode: 'False'": "False",
    "mode: 'no'": "no",
    "mode: '.5'": ".5",
    "mode: x": "x",
    "mode: null": None,
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_quoted_argument_of_an_operator_is_a_text_in_a_file_and_json_on_the_command_line(
    root, tmp_path, monkeypatch, argument
):
    """'1' of a file became a number, because `--config` gives all values as texts."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "moded.py").write_text(MODED)
    file = tmp_path / "own.yaml"
    file.write_text(f"operators: {{m: {{class: 'moded:Moded', {argument}}}}}\n")

    def mode(config):
        return config.operators["m"]["mode"]

    assert mode(read_chosen(root, None, [file], None)) == ARGUMENTS[argument]
    assert mode(open_experiment(load_all(root, file), [file]).config) == ARGUMENTS[argument]
    word = f"operators={{m: {{class: 'moded:Moded', mode: {json.dumps(json.dumps(ARGUMENTS[argument]))}}}}}"
    assert mode(read_chosen(root, None, None, [word])) == ARGUMENTS[argument]
    assert mode(checked(merge(load_all(root), parse_config([word])))) == ARGUMENTS[argument]


@pytest.mark.parametrize(("text", "value"), [("False", False), ("no", False), ("TRUE", True), (".5", 0.5), ("2.", 2.0)])
def test_an_argument_on_the_command_line_is_the_value_that_it_is_in_a_file(root, folder, monkeypatch, text, value):
    """`--config operators='{m: {class: …, scaled: False}}'` gave the operator the text "False", which is true."""
    monkeypatch.syspath_prepend(folder)
    (folder / "moded.py").write_text(MODED)
    (folder / "own.yaml").write_text(words := f"operators: {{m: {{class: 'moded:Moded', mode: {text}}}}}")
    for given in ((None, [words.replace(": ", "=", 1)]), ([Path("own.yaml")], None)):
        mode = read_chosen(root, None, *given).operators["m"]["mode"]
        assert (mode, type(mode)) == (value, type(value))


MODED = """
from symbert.model.attention import OriginalAttention


class Moded(OriginalAttention):
    def __init__(self, config, mode):
        super().__init__(config)
"""


LABELS = ["null", "None", "nan", "NA", "true", "no", "1", '"quoted"', "1.0"]
TEXTS = {  # of which none is what it spells
    "experiment": "null",
    "title": '"null"',
    "texts": {"1": {"source": "copying", "vocabulary": None, "sequence_length": 32, "validation_sequences": 8}},
    "tasks": {
        "mine": {
            **{"train": "a.csv", "validation": "b.csv", "columns": ["null", "true"], "label": "None", "labels": LABELS},
            "metric": "accuracy",
        }
    },
}


def test_a_quoted_text_of_a_file_is_no_null_or_number_whatever_it_spells(root, folder):
    """A class, a column or an experiment called null was null: refused, or lost."""
    file = Path("own.yaml")
    file.write_text(yaml.safe_dump(TEXTS))
    configs = [read_chosen(root, None, [file], None)]
    configs.append(open_experiment(load_all(root, file), [root / "config.yaml", file]).config)
    Experiment(configs[0]).write()
    configs.append(read_experiment(None, None, None, "null").config)
    for config in configs:
        encoded = to_builtins(config)
        assert {key: encoded[key] for key in TEXTS} == TEXTS
        assert tasks_of(config.tasks)["mine"].labels == tuple(LABELS)


def test_a_null_of_the_command_line_is_null_and_a_label_of_that_name_is_told_to_stand_in_a_file(root, folder):
    assert read_chosen(root, None, None, ["corpus={files: null}", "sweep={escape_loss: null}"]).corpus.files is None
    mine = "tasks={{mine: {{train: a.csv, validation: b.csv, columns: [x], metric: accuracy, labels: [{}, yes]}}}}"
    with pytest.raises(ConfigError, match=r"'tasks\.mine\.labels\[0\]': .*quotes, in config\.yaml"):
        read_chosen(root, None, None, [mine.format("null")])
    config = read_chosen(root, None, None, [mine.format("""'"null"'""")])
    assert config.tasks["mine"].labels == ["null", "yes"]


def load_all(root: Path, *more: Path) -> dict:
    """The files of the demo and more, as Snakemake merges them."""
    return reduce(
        merge, map(load_configfile, [root / "workflow/defaults.yaml", root / "workflow/scales/demo.yaml", *more])
    )


# Keys that have no effect.

HUB, MIRROR = {"source": "hub"}, {"source": "mirror", "mirror": "."}
OWN = {"corpus": {"source": "files", "files": "own.txt"}}
DATASET = {"path": "someone/pages"}
UNREAD = {  # by the key and words of the remedy: a change without effect, and what else makes it one that has some
    "corpus.files 'corpus.source'": ({"corpus": {"files": "own.txt"}}, OWN),
    "mirror 'source'": ({"mirror": "."}, MIRROR),
    "corpus.parts embedded 4": ({"corpus": {"parts": 10}}, HUB),
    "corpus.parts 'corpus.files'": (
        {"corpus": {**OWN["corpus"], "parts": 2}},
        {"corpus": {"source": "hub", "files": None}},
    ),
    "corpus.revision hub": ({"corpus": {"revision": "v2"}}, HUB),
    "glue.revision hub": ({"glue": {"revision": "v2"}}, HUB),
    "corpus.keep_raw": ({"corpus": {"keep_raw": True}}, HUB),
    "corpus.dataset 'corpus.source'": ({"corpus": {"dataset": DATASET}}, {"corpus": {"source": "dataset"}}),
    "corpus.parts data_files": (
        {"corpus": {"source": "dataset", "dataset": DATASET, "parts": 3}},
        {"corpus": {"source": "embedded", "dataset": None}},
    ),
    "corpus.blocklist_url UT1": ({"corpus": {"blocklist_url": "https://ut1.example"}}, OWN),
    "corpus.filter.match categories": (
        {"corpus": {"filter": {"rules": [], "match": "suffix"}}},
        {"corpus": {"filter": {"rules": ["categories"]}}},
    ),
    "corpus.filter.match categories_from": (
        {"corpus": {"filter": {"categories_from": "metadata", "match": "suffix"}}},
        {"corpus": {"filter": {"categories_from": "both"}}},
    ),
    "corpus.filter.min_harmful_perplexity perplexity": (
        {"corpus": {"filter": {"rules": ["categories"], "min_harmful_perplexity": 9.0}}},
        {"corpus": {"filter": {"rules": ["perplexity"]}}},
    ),
    "glue.robustness.files sets": (
        {"glue": {"robustness": {"files": "."}}},
        {"glue": {"robustness": {"sets": ["hans"]}}},
    ),
    "glue.robustness.noise_kinds noise": (
        {"glue": {"robustness": {"noise": [], "noise_kinds": ["swap"]}}},
        {"glue": {"robustness": {"noise": [0.2]}}},
    ),
    "pretrain.mask_probability encoder": (
        {"sweep": {"architectures": ["decoder"]}, "pretrain": {"mask_probability": 0.2}},
        {"sweep": {"architectures": ["encoder"]}},
    ),
    "pretrain.batch_size 'architectures.decoder.batch_size'": (
        {
            "sweep": {"architectures": ["decoder"]},
            "architectures": {"decoder": {"batch_size": 8}},
            "pretrain": {"batch_size": 16},
        },
        {"sweep": {"architectures": ["encoder", "decoder"]}},
    ),
    "glue.epochs 'suites.superglue.epochs'": (
        {"sweep": {"suites": ["superglue", "blimp"]}, "glue": {"epochs": 3}},
        {"sweep": {"suites": ["superglue", "glue"]}},
    ),
    "sweep.tasks fine-tuned": (  # a study
        {"sweep": {"learning_rate": [1e-3, 2e-3], "tasks": ["rte"]}},
        {"sweep": {"tasks": ["cola", "rte", "stsb"]}},  # as the demo has them
    ),
    "sweep.finetune_seeds fine-tuned": (
        {"sweep": {"finetuned_pretrain_seeds": [], "finetune_seeds": [1]}},
        {"sweep": {"finetuned_pretrain_seeds": [1]}},
    ),
    "sweep.suites escapes": (
        {"sweep": {"batch_size": [8, 16], "suites": ["superglue"]}},
        {"sweep": {"suites": ["glue"]}},
    ),
    "sweep.tasks cola 'sweep.suites'": (
        {"sweep": {"suites": ["superglue"], "tasks": ["cb", "cola"]}},
        {"sweep": {"suites": ["superglue", "glue"]}},
    ),
}


@pytest.mark.parametrize("words", UNREAD)
def test_a_changed_key_that_nothing_reads_is_an_error_with_the_remedy(words, root, folder):
    """`corpus: {files: …}` without `source: files` trained on the demo's text."""
    (folder / "own.txt").write_text("text\n")
    (folder / "ood").mkdir()
    change, remedy = UNREAD[words]
    for name, settings in (("change.yaml", change), ("remedy.yaml", remedy)):
        (folder / name).write_text(json.dumps(settings))
    with pytest.raises(ConfigError) as refused:
        read_chosen(root, None, [Path("change.yaml")], None)
    line, (key, *told) = str(refused.value), words.split()
    assert f"'{key}'" in line and all(word in line for word in told), line
    read_chosen(root, None, [Path("change.yaml"), Path("remedy.yaml")], None)


def test_snakemake_refuses_the_same_as_symbert(root, config, folder, capsys):
    """It has merged the files by then: two sections of one name are seen in the files alone."""
    (folder / "twice.yaml").write_text("title: a\ntitle: b\n")
    (folder / "own.txt").write_text("text\n")
    for change, files, told in (({}, ["twice.yaml"], "line 2"), ({"corpus": {"files": "own.txt"}}, [], "corpus.files")):
        with pytest.raises(SystemExit) as stop:
            open_experiment({**config, "corpus": {**config["corpus"], **change.get("corpus", {})}}, files)
        assert stop.value.code == 64 and told in capsys.readouterr().err


def test_a_file_of_the_project_that_snakemake_would_refuse_is_named_with_the_remedy(tmp_path, capsys):
    """Of a config.yaml whose lines are all comments Snakemake names neither the file nor what to write."""
    (tmp_path / "full.yaml").write_text("scale: demo\n")
    assert readable(str(tmp_path / "full.yaml")) == str(tmp_path / "full.yaml")
    for text, told in (
        ("# scale: demo\n", "{} for none"),
        ("pretrain:\n\tsteps: 5\n", "line 2"),
        ("title: Größe", "UTF-8"),
    ):
        (tmp_path / "config.yaml").write_text(text, encoding="latin-1")
        with pytest.raises(SystemExit) as stop:
            readable(str(tmp_path / "config.yaml"))
        line = capsys.readouterr().err
        assert stop.value.code == 65 and f"{tmp_path}/config.yaml" in line and told in line, line


def test_a_module_is_given_the_keys_that_differ_and_has_the_rest_of_the_project(root, folder):
    """For a module with a `config:` line Snakemake reads no file of ours."""
    given = {"experiment": "mine", "pretrain": {"batch_size": 7}}
    Path(scale := configured_scale(given)).relative_to(root)
    config = open_experiment(given, [scale]).config
    assert config == read_chosen(root, None, None, ["experiment=mine", "pretrain={batch_size: 7}"])
    assert given == {"experiment": "mine", "pretrain": {"batch_size": 7}}, "which is the other workflow's"


MISREAD = {  # in the Slurm profile: a resource, and words of the line; for Snakemake 43,200, 12, 1 and functions
    "runtime: 12:00:00": "line 3 12:00:00",
    "runtime: 720.0": "set-resources.pretrain.runtime 720.0 minutes",
    "runtime: 1-0": "set-resources.pretrain.runtime 1-0 minutes",
    "slurm_partition: all": "set-resources.pretrain.slurm_partition quote \"'all'\"",
    "qos: max": "set-resources.pretrain.qos quote",
}


@pytest.mark.parametrize("resource", MISREAD)
def test_a_resource_that_snakemake_takes_for_something_else_is_refused(resource, root, folder):
    path, before = folder / "profiles/slurm/config.yaml", "default-resources: {runtime: attempt * 60}\nset-resources:\n"
    path.parent.mkdir(parents=True)
    path.write_text(f"{before}  pretrain: {{{resource}}}\n")
    (folder / "mine").mkdir()
    own = shutil.copy(path, folder / "mine/config.v9+.yaml")
    for file, place, words in ((path, folder, []), (own, root, ["--profile", "mine"]), (own, root, ["--profile=mine"])):
        with pytest.raises(ConfigError) as refused:
            check_profiles(place, ["snakemake", "--cores", "2", *words])
        assert all(word in str(refused.value) for word in [str(file), *MISREAD[resource].split()]), refused.value
    for right in ("720", "12h", "2d", "30m", "'attempt * 240'"):
        path.write_text(f"{before}  pretrain: {{runtime: {right}, slurm_partition: \"'all'\"}}\n")
        check_profiles(folder, [])
    check_profiles(root, [])


def test_a_file_of_settings_makes_no_objects(tmp_path):
    """The loader of files is one of our own: it is as safe as the one below it."""
    file = tmp_path / "config.yaml"
    file.write_text("scale: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(DataError, match="line 1: not YAML"):
        read_yaml(file)
