"""Models from elsewhere: which files are read of a folder or of the hub, what is refused, and what an experiment has of
them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from corpus.hub_site import COMMIT, TOKEN, served_hub
from corpus.sites import status
from foreign import FAMILIES, make_model, tokenizer_of
from symbert import cli
from symbert.configuration import merge
from symbert.errors import ConfigError, DataError, MissingInputError, RemoteError
from symbert.experiment.layout import Experiment
from symbert.experiment.models import positions_of
from symbert.experiment.plan import lines_of, outputs_of, warnings_of
from symbert.experiment.project import begun, checked, whole
from symbert.experiment.status import status_of
from symbert.files import read_json, write_json
from symbert.glue.score import Finetune, Robustness
from symbert.steps import read_step

NAME = "owner/model"
ALONE = {"sweep": {"attention": [], "suites": ["glue"], "tasks": ["mrpc", "cola"]}}
NO_NOISE = {"glue": {"robustness": {"noise": []}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[..., Path]:
    """A folder with a model of a family, which is made once."""
    above, configs = tmp_path_factory.mktemp("models"), {}

    def made(family: str = "bert", **config) -> Path:
        name = f"{family}-{configs.setdefault(json.dumps(config), len(configs))}"
        return above / name if (above / name).is_dir() else make_model(above / name, family, **config)

    return made


@pytest.fixture
def start(config, folder):
    """An experiment with models from elsewhere alone, by their paths or by all of their keys."""

    def start(models: dict, *changes: dict) -> Experiment:
        asked = {name: keys if isinstance(keys, dict) else {"path": str(keys)} for name, keys in models.items()}
        values = merge(merge(config, ALONE), {"models": asked})
        for change in changes:
            values = merge(values, change)
        return Experiment(checked(values))

    return start


@pytest.fixture
def mine(made, folder) -> Path:
    """A copy of a BERT in the folder `mine`, to be changed."""
    shutil.copytree(made(), "mine")
    return Path("mine")


def edit(file: Path, **keys) -> None:
    """Change keys of a file of JSON; None removes one."""
    content = {**json.loads(file.read_text()), **keys}
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def shard(folder: Path) -> list[str]:
    """Spread the weights of a folder over two files, as transformers does; gives their names."""
    weights, names = load_file(folder / "model.safetensors"), ["model-00001-of-00002.safetensors"]
    names.append(names[0].replace("00001", "00002", 1))
    place = {name: names[number % 2] for number, name in enumerate(sorted(weights))}
    for part in names:
        save_file({name: weights[name] for name in weights if place[name] == part}, folder / part)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": place})
    (folder / "model.safetensors").unlink()
    return names


def test_every_family_is_planned_with_its_own_rows_and_nothing_is_pretrained(made, start):
    experiment = start({family: made(family) for family in FAMILIES})
    assert [*experiment.models] == FAMILIES and not experiment.runs and not experiment.texts
    kinds = {kind: [*filter(lambda score: isinstance(score.scoring, kind), experiment.scores.values())]
             for kind in (Finetune, Robustness)}  # fmt: skip
    assert len(kinds[Finetune]) == len(kinds[Robustness]) == len(FAMILIES)
    rows = {score.scoring.rows.folder for score in kinds[Finetune]}
    alike = {"bert", "electra", "distilbert"}  # in vocabulary, not in family, which may choose another class
    assert len(rows) == len(FAMILIES) and alike < {*FAMILIES}
    for score in kinds[Finetune]:
        reads = experiment.inputs_of[score.file]
        assert score.file.startswith(f"{score.scoring.folder}/models/{score.run.name}-{score.run.key}/")
        assert {
            str(made(score.run.name) / name) for name in ("config.json", "model.safetensors", "tokenizer.json")
        } <= {*reads}
    assert not any(file.startswith("results/corpus") or "vocab" in file for file in experiment.settings)
    assert "manifest" not in experiment.inputs and experiment.report_settings.steps is None
    assert experiment.input_files == [*experiment.scores]
    for model in experiment.models.values():
        weights = sum(values.numel() for values in load_file(made(model.name) / "model.safetensors").values())
        assert model.parameters == pytest.approx(weights, rel=0.06), "the header of a small file is 5 % of it"


def test_what_is_planned_is_what_the_jobs_read(mine, start):
    experiment = start({"mine": mine})
    experiment.write()
    (model,) = experiment.models.values()
    assert read_step(Path(model.folder), type(model)) == model
    for file, score in experiment.scores.items():
        assert read_step(Path(score.scoring.folder), Finetune | Robustness) == score.scoring
        assert score.options[:4] == ["--settings", score.scoring.folder, "--checkpoint", model.folder]
        assert Path(file).parent.parent == Path(score.scoring.folder, "models")
    assert experiment.inputs["models"] == [model.settings_file]
    assert start({"mine": mine}).record == experiment.record


def test_a_model_counts_by_the_content_of_its_files_and_not_by_what_lies_beside_them(mine, start):
    """A folder of a trainer has its optimizer, earlier steps and logs; it may be moved."""

    def keys(path: str = "mine") -> tuple[set[str], set[str]]:
        experiment = start({"mine": path}, NO_NOISE)
        return {*experiment.scores}, {file for file in experiment.settings if file.startswith("results/tasks")}

    scores, rows = keys()
    for name in ("optimizer.pt", "training_args.bin", "checkpoint-5/model.safetensors", "runs/events", ".git/config"):
        write_json(mine / name, {})
    shutil.copytree(mine, "moved")
    assert keys() == keys("./moved/") == (scores, rows)
    weights = {name: values + 1 for name, values in load_file(mine / "model.safetensors").items()}
    save_file(weights, mine / "model.safetensors")
    other, same = keys()
    assert not other & scores and same == rows
    edit(mine / "tokenizer_config.json", model_max_length=64)
    assert keys()[1] != rows


@pytest.mark.parametrize("kind", ["sharded", "pickled", "sharded pickle", "half"])
def test_weights_may_lie_in_several_files_or_in_a_pickle(mine, start, kind):
    whole = start({"mine": mine}).models["mine"].parameters
    weights, expected = load_file(mine / "model.safetensors"), ["pytorch_model.bin"]
    if kind == "sharded":
        expected = ["model.safetensors.index.json", *shard(mine)]
    elif kind == "half":
        expected = ["model.safetensors"]
        save_file({name: values.bfloat16() for name, values in weights.items()}, mine / "model.safetensors")
        edit(mine / "config.json", dtype="bfloat16")
    else:
        torch.save(weights, mine / "pytorch_model.bin")
        (mine / "model.safetensors").unlink()
    if kind == "sharded pickle":
        write_json(mine / "pytorch_model.bin.index.json", {"weight_map": {"all": "part-1.bin"}})
        (mine / "pytorch_model.bin").rename(mine / "part-1.bin")
        expected = ["pytorch_model.bin.index.json", "part-1.bin"]
    model = start({"mine": mine}).models["mine"]
    assert [*model.content] == ["config.json", *expected]
    assert [*model.weights] == [name for name in expected if not name.endswith(".json")]
    assert model.parameters == pytest.approx(whole, rel=0.15)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def config(**keys) -> Callable[[Path], None]:
    return lambda folder: edit(folder / "config.json", **keys)


def edit_text(file: Path, *changes: str) -> None:
    """Replace each other text by the next."""
    text = file.read_text()
    for before, after in zip(changes[::2], changes[1::2], strict=True):
        assert before in text
        text = text.replace(before, after)
    file.write_text(text)


def without_padding(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", pad_token=None, tokenizer_class="PreTrainedTokenizerFast")


def remote_tokenizer(folder: Path) -> None:
    remove("tokenizer.json")(folder)
    (folder / "vocab.txt").write_text("")
    auto = {"AutoTokenizer": ["code.Mine", None]}
    edit(folder / "tokenizer_config.json", tokenizer_class="Mine", auto_map=auto)


REFUSED: dict[str, tuple[Callable[[Path], object], dict, str]] = {
    "no tokenizer": (
        lambda folder: [remove(name)(folder) for name in ("tokenizer.json", "tokenizer_config.json")],
        {},
        "'models.mine.path': mine: no tokenizer .*save",
    ),
    "no weights": (remove("model.safetensors"), {}, "no weights"),
    "weights of TensorFlow": (
        lambda folder: (folder / "model.safetensors").rename(folder / "tf_model.h5"),
        {},
        "no weights .*found tf_model.h5; save them with transformers",
    ),
    "a part is missing": (lambda folder: remove(shard(folder)[1])(folder), {}, "lists model-00002.*missing"),
    "a pointer of Git LFS": (
        lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n"),
        {},
        "model.safetensors: a pointer of Git LFS.*git lfs pull",
    ),
    "a pointer in place of the tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\n"),
        {},
        "tokenizer.json: a pointer of Git LFS.*git lfs pull",
    ),
    "an adapter": (
        lambda folder: (folder / "adapter_config.json").write_text("{}"),
        {},
        "mine: has adapter_config.json: .*merge",
    ),
    "a list of no weights": (
        lambda folder: [
            remove("model.safetensors")(folder),
            write_json(folder / "model.safetensors.index.json", {"weight_map": {}}),
        ],
        {},
        "mine/model.safetensors.index.json: lists no file",
    ),
    "no config.json": (remove("config.json"), {}, "mine: no config.json; name a model in Hugging Face's layout"),
    "config.json is no JSON": (lambda folder: (folder / "config.json").write_text("{"), {}, "mine/config.json: "),
    "no family": (config(model_type=None), {}, "config.json: no 'model_type'"),
    "code of its own": (
        config(model_type="nomic", auto_map={"AutoModel": "modeling.Nomic"}),
        {},
        "needs code of its own, which is never run .model_type nomic.; choose",
    ),
    "an unknown family": (config(model_type="brt"), {}, "a family that transformers does not know .model_type brt."),
    "a decoder": (config(model_type="gpt2"), {}, "no encoder of model_type gpt2"),
    "an encoder-decoder": (config(model_type="bart"), {}, "no encoder of model_type bart"),
    "this project's own": (config(model_type="symbert"), {}, "name its operator in 'sweep.attention'.*symbert export"),
    "quantized": (
        config(quantization_config={"bits": 4}),
        {},
        "mine: is quantized; name the model that it was made of",
    ),
    "a part elsewhere": (
        lambda folder: [
            remove("model.safetensors")(folder),
            write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "../mine/config.json"}}),
        ],
        {},
        "index.json: lists ../mine/config.json, expected files beside it",
    ),
    "a wrong value": (config(hidden_dropout_prob="a lot"), {}, "mine/config.json: cannot be read"),
    "too few embeddings": (config(vocab_size=20), {}, "its tokenizer has ids up to [0-9,]+, 'vocab_size' of .* is 20"),
    "no padding": (without_padding, {}, "no padding token; set 'pad_token'"),
    "no mask": (
        lambda folder: edit(folder / "tokenizer_config.json", mask_token=None, tokenizer_class="TokenizersBackend"),
        {"sweep": {"suites": ["glue", "blimp"]}},
        "mine: its tokenizer has no mask, .*'blimp'",
    ),
    "a head that predicts no token": (
        config(model_type="electra", architectures=["ElectraForPreTraining"]),
        {"sweep": {"suites": ["glue", "blimp"]}},
        "mine: its head tells which tokens were replaced and predicts none, .*'blimp'",
    ),
    "positions after a padding that is unknown": (
        lambda folder: edit_text(
            folder / "config.json", '"pad_token_id": 0', '"pad_token_id": null', "bert", "roberta"
        ),
        {},
        "mine/config.json: no 'pad_token_id', after which the positions of roberta begin",
    ),
    "its tokenizer has code": (remote_tokenizer, {}, "its tokenizer needs code of its own, which is never run"),
    "its tokenizer is damaged": (
        lambda folder: (folder / "tokenizer.json").write_text('{"model"'),
        {},
        "'models.mine.path': mine: .*tokenizer",
    ),
    "long rows": (
        lambda folder: None,
        {"glue": {"max_length": 129}},
        "'glue.max_length' is 129, but models.mine .mine. has 128 positions; lower it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_end_a_job_is_one_line_before_the_start(mine, start, case):
    change, changes, said = REFUSED[case]
    change(mine)
    with pytest.raises((ConfigError, DataError, MissingInputError), match=said) as caught:
        start({"mine": "mine"}, changes)
    assert "\n" not in str(caught.value) and not Path("results").exists()


def test_code_of_a_model_of_a_known_family_is_not_run_and_the_plan_says_so(mine, start):
    assert warnings_of(start({"mine": mine})) == []
    edit(mine / "config.json", auto_map={"AutoModel": "modeling.Mine"})
    (said,) = warnings_of(start({"mine": mine}))
    assert "models.mine" in said and "auto_map" in said and "transformers' bert" in said


def test_a_tokenizer_that_begins_no_row_with_its_token_for_classification_is_told_of_at_the_start(mine, start, capsys):
    start({"mine": mine})
    assert "warning" not in capsys.readouterr().err
    content = read_json(mine / "tokenizer.json", dict)
    write_json(mine / "tokenizer.json", content | {"post_processor": None})
    edit(mine / "tokenizer_config.json", tokenizer_class="TokenizersBackend")
    start({"mine": mine})
    assert "its tokenizer begins no row with its [CLS]" in capsys.readouterr().err


def test_a_cased_tokenizer_that_transformers_lower_cases_is_told_of_at_the_start(mine, made, start, capsys):
    start({family: made(family) for family in FAMILIES})
    assert "warning" not in capsys.readouterr().err
    content = read_json(mine / "tokenizer.json", dict)
    write_json(mine / "tokenizer.json", content | {"normalizer": {"type": "NFC"}})
    start({"mine": mine})
    assert "models.mine" in (told := capsys.readouterr().err) and "cuts text otherwise than its tokenizer.json" in told
    edit(mine / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    start({"mine": mine})
    assert "warning" not in capsys.readouterr().err


def test_what_is_asked_of_a_model_later_is_refused_before_the_start_too(mine, start):
    edit(mine / "config.json", model_type="electra", architectures=["ElectraForPreTraining"])
    start({"mine": "mine"}).write()
    with pytest.raises(ConfigError, match="'blimp'"):
        start({"mine": "mine"}, {"sweep": {"suites": ["glue", "blimp"]}})
    start({"mine": "mine"}, {"sweep": {"finetune_seeds": [7]}})


def test_rows_of_a_suite_of_its_own_length_are_counted_apart_and_positions_as_their_family_does(made, start):
    """RoBERTa's begin after the padding: 130 rows of its embedding are 128 positions. DeBERTa's are relative."""
    families = {family: read_json(made(family) / "config.json", dict) for family in FAMILIES}
    relative = {"deberta", "deberta-v2", "deberta-v3"}
    for family, content in families.items():
        assert positions_of(content) == (None if family in relative else 128), family
    suites = {"suites": {"superglue": {"max_length": 130}}, "sweep": {"suites": ["superglue"], "tasks": ["cb"]}}
    with pytest.raises(ConfigError, match="'suites.superglue.max_length' is 130.* 128 positions"):
        start({"mine": made("roberta")}, suites)
    start({"mine": made("deberta-v3")}, suites)
    pairs = {"suites": {"blimp": {"max_length": 129}}, "sweep": {"suites": ["glue", "blimp"]}}
    with pytest.raises(ConfigError, match="'suites.blimp.max_length' is 129.* 128 positions"):
        start({"mine": made("roberta")}, pairs)


NAMED: dict[str, tuple[dict, dict, str]] = {
    "case": ({"BERT": "mine", "bert": "mine"}, {}, "'models' has BERT and bert, whose names differ in case alone"),
    "operator": ({"shared": "mine"}, {}, "'models' has shared, which is the name of an operator"),
    "run": ({"tiny-original": "mine"}, {"sweep": {"attention": ["original"]}}, "'models' has tiny-original, which"),
    "letters": ({"my model": "mine"}, {}, "write letters, digits"),
    "folder": ({"a": "./min"}, {}, "'models.a.path': ./min: no such folder, and no name of the hub.*or owner/name"),
    "no owner": ({"a": "bert-base-uncased"}, {}, "bert-base-uncased: no such folder, and no name of the hub"),
    "file": ({"a": "mine/config.json"}, {}, "mine/config.json: is a file; name a folder"),
    "option": ({"a": "-mine"}, {}, "'models.a.path'.*rename it"),
    "revision": ({"a": {"path": "mine", "revision": "v2"}}, {}, "'models.a.revision' is 'v2', which is of the hub"),
    "key": ({"a": {"path": "mine", "seed": 1}}, {}, "unknown key 'seed' in 'models.a'"),
    "text": ({"a": {"path": "mine", "learning_rate": "high"}}, {}, "'models.a.learning_rate'.*a list of them"),
    "no rate": ({"a": {"path": "mine", "learning_rate": []}}, {}, "'models.a.learning_rate'"),
    "nothing": ({}, {}, "so nothing is compared; name an operator, or a model"),
    "grid": ({"a": "mine"}, {"sweep": {"learning_rate": [1e-3, 2e-3]}}, "but the grid sweep trains; name an operator"),
    "seeds": (
        {"a": {"path": "mine", "learning_rate": [1e-5, 2e-5]}},
        {"sweep": {"tuning_seeds": [2, 9]}},
        "'sweep.tuning_seeds' and 'sweep.finetune_seeds' both have 2",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_name_a_path_or_a_rate_that_makes_no_sense_is_one_line(mine, start, case):
    models, changes, said = NAMED[case]
    with pytest.raises((ConfigError, MissingInputError), match=said):
        start(models, changes)


UNREAD: dict[str, dict] = {
    "pretrain.steps": {"pretrain": {"steps": 7}},
    "corpus.parts": {"corpus": {"parts": 2}},
    "sweep.sizes": {"sweep": {"sizes": ["small"]}},
    "sweep.untrained": {"sweep": {"untrained": True}},
    "sweep.tuning_seeds": {"sweep": {"tuning_seeds": [8]}},
    "models": {"sweep": {"attention": ["original"], "learning_rate": [1e-3, 2e-3]}},
}


@pytest.mark.parametrize("key", UNREAD)
def test_a_key_of_pretraining_has_no_effect_without_any(project, mine, key):
    """`project` has the demo's scale."""
    begun(whole(merge(ALONE, {"models": {"a": {"path": "mine"}}}), project), project)
    changed = merge(merge(ALONE, {"models": {"a": {"path": "mine"}}}), UNREAD[key])
    with pytest.raises(ConfigError, match=f"'{key}' is .*, which has no effect"):
        begun(whole(yaml.safe_load(yaml.safe_dump(changed)), project), project)


def test_rates_of_a_list_are_tuned_and_of_one_number_are_not(mine, start):
    models = {"fixed": mine, "own": {"path": "mine", "learning_rate": [3e-5, 1e-5]}}
    lists = {"glue": {"robustness": {"noise": []}, "learning_rate": [2e-3, 1e-3]}}
    own = {name: {"path": "mine", "learning_rate": rate} for name, rate in (("one", 5e-5), ("alone", [5e-5]))}
    scores = {score.run.name: score for score in start(models | own, lists).scores.values()}
    tunings = {name: score.scoring.tuning for name, score in scores.items()}
    assert tunings["fixed"].rates == [1e-3, 2e-3] and tunings["own"].rates == [1e-5, 3e-5]
    assert tunings["own"].seeds == [101, 102, 103] and tunings["one"] is tunings["alone"] is None
    first = {name: score.scoring.protocol.learning_rate for name, score in scores.items()}
    assert first == {"fixed": 1e-3, "own": 1e-5, "one": 5e-5, "alone": 5e-5}
    assert scores["one"].scoring == scores["alone"].scoring, "a list of one is no choice"
    again = start(models | own, lists, {"models": {"own": {"learning_rate": [1e-5, 3e-5]}}})
    assert {*again.scores} == {score.file for score in scores.values()}, "in whatever order"


def test_a_list_of_a_suite_stands_above_that_of_glue_and_is_the_runs_too(changed):
    experiment = changed(
        {
            "sweep": {"suites": ["glue", "superglue"], "tasks": ["mrpc", "cb"]},
            "suites": {"superglue": {"learning_rate": [1e-3, 2e-3]}},
        }
    )
    tunings = {score.scoring.suite: score.scoring.tuning for score in experiment.scores.values()
               if isinstance(score.scoring, Finetune)}  # fmt: skip
    assert tunings["glue"] is None and tunings["superglue"].rates == [1e-3, 2e-3]
    settings = experiment.report_settings.settings
    assert settings["suites.superglue.learning_rate"] == "0.001, 0.002"
    assert settings["sweep.tuning_seeds"] == "101, 102, 103"


def test_models_stand_beside_runs_whose_folders_stay(mine, start, experiment):
    attention = experiment.config.sweep.attention
    beside = start({"mine": mine}, {"sweep": {"attention": attention, "suites": ["glue", "blimp"]}}, NO_NOISE)
    assert beside.runs == experiment.runs and beside.compared == experiment.compared
    of_model = [score for score in beside.scores.values() if score.run is beside.models["mine"]]
    tuned, pairs = of_model
    assert tuned.seeds == sorted(beside.config.sweep.finetune_seeds) and pairs.file in beside.inputs["blimp"]
    assert tuned.file in beside.inputs["scores"]["glue"] and tuned.file not in beside.inputs["curve"]["glue"]
    assert {str(mine / "tokenizer.json"), str(mine / "model.safetensors")} <= {
        *pairs.scoring.rows.reads_for(),
        *beside.inputs_of[pairs.file],
    }


def test_a_job_asks_for_threads_memory_and_a_gpu_by_the_parameters(mine, start):
    experiment = start({"mine": mine})

    def needs(parameters: int) -> tuple[int, int, bool]:

        large = msgspec.structs.replace(experiment.models["mine"], parameters=parameters)
        experiment._shapes["mine"] = large
        wildcards = SimpleNamespace(model="mine")
        jobs = experiment.needs
        return jobs.threads(wildcards), jobs.memory(wildcards, 1), bool(jobs.gpus(wildcards))

    assert needs(30_000) == (1, 2000, False)
    assert needs(110_000_000) == (8, 16_000, True), "bert-base, as our size base"
    assert needs(4_400_000)[2] is False, "BERT-tiny of two layers of 128"


def test_the_plan_counts_tuning_and_the_status_says_what_is_there(mine, start):
    plain = merge(NO_NOISE, {"glue": {"keep_finetuned": False}})
    fixed = start({"mine": mine}, plain)
    tuned = start({"mine": {"path": "mine", "learning_rate": [1e-5, 2e-5]}}, plain)

    def seconds(experiment: Experiment) -> float:
        return sum(output.seconds for output in outputs_of(experiment))

    seeds = len(fixed.config.sweep.finetune_seeds)
    assert seconds(tuned) == pytest.approx(seconds(fixed) * (seeds + 2 * 3) / seeds)
    said = ["\n".join(lines_of(experiment, outputs_of(experiment))) for experiment in (tuned, fixed)]
    assert f"tuning: 12 of {12 + 2 * seeds} fine-tunings" in said[0] and "tuning:" not in said[1]
    (file,) = fixed.scores
    assert status_of(fixed)[-1].endswith(f"{Path(file).parts[2]} no")
    write_json(Path(file), [])
    assert status_of(fixed)[-1].endswith(" yes")
    assert [output.file for output in outputs_of(fixed) if output.is_missing and output.seconds] == []


def test_prune_leaves_a_model_that_an_experiment_names_and_takes_others(mine, start, capsys):
    experiment = start({"mine": mine}, NO_NOISE)
    experiment.write()
    write_json(Path("results/models/gone-01234567/settings.json"), {})
    assert cli.main(["prune", "--yes"]) == 0
    assert [*Path("results/models").iterdir()] == [Path(experiment.models["mine"].folder)]
    assert Path("mine/model.safetensors").is_file() and "gone-01234567" in capsys.readouterr().out


# The hub.


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("symbert.corpus.download.ATTEMPTS", 2)
    monkeypatch.setattr("symbert.corpus.download.PAUSE", 0.01)
    with served_hub(monkeypatch) as hub:
        yield hub


def test_a_sharded_model_of_the_hub_is_that_of_the_commit_of_the_first_start(mine, start, hub):
    parts = shard(mine)
    sizes = {name: (mine / name).stat().st_size for name in parts}
    for beside in ("pytorch_model.bin", "tf_model.h5", "README.md"):
        (mine / beside).write_text("never read")
    hub.add_model(NAME, mine)
    shutil.rmtree(mine)
    experiment = start({"bert": NAME}, NO_NOISE)
    model, (file,) = experiment.models["bert"], experiment.scores
    assert (model.origin, model.commit) == (NAME, COMMIT) and [*model.weights] == parts
    assert not any(Path(file.path).exists() for file in model.weights.values()), "the rule downloads them"
    downloads = [output.download for output in outputs_of(experiment) if output.download]
    assert downloads == [*sizes.values()] and status_of(experiment)[-1].count("to be downloaded") == 1
    assert {file.path for file in model.weights.values()} <= {*experiment.inputs_of[file], *experiment.everything}
    asked = len(hub.host.asked)
    hub.host.bodies[hub.interface("model", NAME)] = b'{"id": "x", "sha": "%b"}' % (b"2" * 40)
    assert start({"bert": NAME}, NO_NOISE).record == experiment.record and len(hub.host.asked) == asked
    experiment.write()
    for weights in model.weights.values():
        assert cli.main(["download", weights.path]) == 0
        assert Path(weights.path).stat().st_size == sizes[Path(weights.path).name]
    Path(experiment.models["bert"].checkpoint, "tokenizer.json").unlink()
    assert start({"bert": NAME}, NO_NOISE).record == experiment.record, "what is downloaded changes no key"
    assert cli.main(["prune", "--yes"]) == 0 and all(Path(file.path).is_file() for file in model.weights.values())
    assert not any(Path(asked.path).name in ("tf_model.h5", "pytorch_model.bin") for asked in hub.host.asked)
    assert TOKEN not in Path(model.settings_file).read_text()


def test_a_gated_model_without_a_token_is_one_line_that_says_where_to_ask(mine, start, hub, monkeypatch):
    hub.add_model(NAME, mine)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
    hub.host.fail(hub.path("model", NAME, "config.json"), status(401), always=True)
    with pytest.raises(RemoteError) as caught:
        start({"bert": NAME})
    said = str(caught.value)
    assert f"'models.bert.path': {NAME}: " in said and "accept the terms" in said and "set HF_TOKEN" in said
    hub.host.faults.clear()
    start({"bert": NAME})


def test_a_path_that_is_neither_a_folder_nor_on_the_hub_is_one_line_that_says_both(folder, start, hub):
    with pytest.raises(MissingInputError, match=r"my/encodr: no such folder here, and on the hub: .*HTTP 404; check"):
        start({"mine": "my/encodr"})


def test_without_a_network_a_model_that_was_asked_for_once_is_planned_and_another_is_refused(
    mine, start, hub, monkeypatch
):
    hub.add_model(NAME, mine)
    start({"bert": NAME}).write()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    start({"bert": NAME})
    with pytest.raises(RemoteError, match=r"a/b: no such folder here.*HF_HUB_OFFLINE is set; unset it"):
        start({"other": "a/b"})


def test_tokenizers_that_are_equal_share_their_rows(made, start, folder):
    """Two seeds of one family, of which one was moved by its user."""
    shutil.copytree(made(), "other")
    save_file({"x": torch.zeros(1)}, "other/model.safetensors")
    experiment = start({"one": made(), "other": "other"}, NO_NOISE)
    assert len({score.scoring.folder for score in experiment.scores.values()}) == 1
    assert len(experiment.scores) == 2 and tokenizer_of("bert").is_fast
