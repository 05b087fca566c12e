import os
import re

import pytest
import yaml

from symbert.checks import check, refuse_stand_ins
from symbert.config import merge, training_of
from symbert.errors import ConfigError, MissingInputError
from symbert.project import read_config


@pytest.fixture
def paper(root):
    return yaml.safe_load((root / "config.yaml").read_text())


def own_files(config, pattern, **corpus):
    return merge(config, {"corpus": {"source": "files", "files": str(pattern), **corpus}})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sorce": "hub"}, ["'sorce'", "did you mean 'source'"]),
        ({"source": "miror"}, ["'source'", "did you mean 'mirror'"]),
        ({"sweep": {"attention": ["original", "symetric"]}}, ["sweep.attention.1", "did you mean 'symmetric'"]),
        ({"pretrain": {"learning_rate": "1e-4x"}}, ["'pretrain.learning_rate' is '1e-4x', expected a number > 0"]),
        ({"pretrain": {"dropout": 1}}, ["'pretrain.dropout' is 1, expected a number ≥ 0 and < 1; correct it"]),
        ({"sweep": {"tasks": ["mrpc", "rte", "mrpc"]}}, ["'sweep.tasks' has 'mrpc' twice"]),
        ({"pretrain": {"stepz": 1}}, ["'stepz' in 'pretrain'", "did you mean 'steps'"]),
        ({"experiment": "../elsewhere"}, ["experiment"]),
        ({"sweep": {"curve": {"steps": {"tiny": [301]}}}}, ["'sweep.curve.steps' has 301", "pretrain.save_every"]),
        ({"sweep": {"curve": {"sizes": ["base"]}}}, ["sweep.curve.sizes", "base"]),
        ({"sweep": {"contrasts": [["pairwise", "base"]]}}, ["'sweep.contrasts' has 'base'", "'sweep.attention'"]),
        ({"sweep": {"finetuned_pretrain_seeds": [9]}}, ["sweep.finetuned_pretrain_seeds", "9", "sweep.pretrain_seeds"]),
        (
            {"pretrain": {"schedule_steps": 2399}},
            ["is 2399, before", "set both", "pretrain='{steps: 2400, schedule_steps: null}'"],
        ),
        (
            {"recipe": "fast", "pretrain": {"shard_parameters": True, "processes": 2}},
            ["'pretrain.shard_parameters'", "set recipe=faithful"],
        ),
        (
            {"pretrain": {"shard_parameters": True, "processes": 3, "batch_size": 32}},
            ["'pretrain.batch_size' is 32, no multiple of the 3 processes"],
        ),
        ({"source": "mirror"}, ["corpus.source", "mirror=DIR"]),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key_and_the_remedy(config, changes, words):
    with pytest.raises(ConfigError) as caught:
        check(merge(config, changes))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("pretrain", "decoder", "told"),
    [
        ({"schedule_steps": 2400}, {"steps": 5000}, ("pretrain.schedule_steps", "hosts.decoder.steps")),
        ({}, {"steps": 2400, "schedule_steps": 300}, ("hosts.decoder.schedule_steps", "hosts.decoder.steps")),
        ({"processes": 4}, {"batch_size": 3}, ("pretrain.processes", "hosts.decoder.batch_size")),
        ({"processes": 4, "shard_parameters": True}, {"batch_size": 6}, ("hosts.decoder.batch_size",)),
    ],
)
def test_a_hosts_own_values_are_checked_as_those_of_the_encoder_are(config, pretrain, decoder, told):
    """Only `pretrain` was, and 5,000 steps of a schedule of 1,600, the example of config.yaml, ended at a rate of 0."""
    chosen = {"pretrain": pretrain, "hosts": {"decoder": decoder}}
    with pytest.raises(ConfigError) as refused:
        check(merge(config, {**chosen, "sweep": {"hosts": ["encoder", "decoder"]}}))
    assert all(f"'{key}'" in str(refused.value) for key in told)
    check(merge(config, chosen))  # of a host that is not in the sweep nothing is trained


def test_the_comments_example_of_hosts_is_a_setting_that_trains(root):
    """It had 5,000 steps alone: of these 3,400 at a rate of 0 at scale demo, and a warm-up of 10,000 at scale paper."""
    (example,) = re.findall(
        r"^hosts: \{\} .* have another value in another host: (\{.*\}) \(", (root / "config.yaml").read_text(), re.M
    )
    for scale in ("demo", "paper"):
        chosen = {"scale": scale, "source": "hub", "sweep": {"hosts": ["decoder"]}, "hosts": yaml.safe_load(example)}
        training = training_of(read_config(root, chosen), "decoder")
        assert training.steps == 5000 and training.schedule_steps is None and training.warmup_steps < 5000


def test_a_missing_mirror_directory_is_named(config):
    with pytest.raises(MissingInputError, match="/no/such/place"):
        check({**config, "source": "mirror", "mirror": "/no/such/place"})


def test_texts_of_the_command_line_become_the_values_that_their_types_want(config):
    pretrain = {"steps": "600", "learning_rate": "1.0e-3", "dropout": "1e-1", "schedule_steps": "null"}
    texts = {"pretrain": pretrain, "corpus": {"keep_raw": "yes", "source": "null", "filter": {"rules": "[categories]"}}}
    sweep = {"finetune_seeds": ["1", "2"], "curve": {"steps": {"tiny": ["300", "600"]}}}
    told = merge(config, {**texts, "sweep": sweep})
    check(told)
    assert told["pretrain"]["steps"] == 600 and told["pretrain"]["learning_rate"] == 1e-3
    assert told["pretrain"]["dropout"] == 0.1, "a number, although YAML takes it for a text"
    assert told["pretrain"]["schedule_steps"] is None and told["corpus"]["filter"]["rules"] == ["categories"]
    assert told["corpus"]["keep_raw"] is True and told["corpus"]["source"] is None
    assert told["sweep"]["finetune_seeds"] == [1, 2] and told["sweep"]["curve"]["steps"]["tiny"] == [300, 600]
    assert told["glue"]["revision"] == config["glue"]["revision"]


@pytest.mark.parametrize("scale", ["demo", "laptop", "single-gpu", "paper"])
def test_every_scale_is_valid(root, paper, scale):
    check(merge(paper, {"scale": scale, **yaml.safe_load((root / f"workflow/scales/{scale}.yaml").read_text())}))


def test_files_that_are_missing_unnamed_or_named_alike_are_refused(config, tmp_path):
    with pytest.raises(ConfigError, match=r"'corpus\.files' names none"):
        check(merge(config, {"corpus": {"source": "files"}}))
    with pytest.raises(MissingInputError, match=r"no file matches .*/\*\.txt"):
        check(own_files(config, tmp_path / "*.txt"))
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "a.parquet").touch()
    with pytest.raises(ConfigError, match=r"a\.parquet and .*a\.jsonl would both be part a; rename one"):
        check(own_files(config, tmp_path / "a.*"))


def test_a_folder_of_text_that_is_not_there_or_may_not_be_read_is_told_so(config, tmp_path, monkeypatch):
    """Without the folder, `crawl/**` matched the folder itself, "which cannot be read"."""
    monkeypatch.chdir(tmp_path)
    for pattern in ("crawl/**", "crawl/deep/*.txt", f"{tmp_path}/crawl/**/*.txt"):
        with pytest.raises(MissingInputError, match=r"'corpus\.files': no directory (.*/)?crawl"):
            check(own_files(config, pattern))
    (tmp_path / "crawl").mkdir()
    with pytest.raises(MissingInputError, match=r"'corpus\.files': no file matches crawl/\*\*"):
        check(own_files(config, "crawl/**"))
    (tmp_path / "crawl/a.txt").touch()
    check(own_files(config, "crawl/**"))
    monkeypatch.setenv("HOME", str(tmp_path))
    check(own_files(config, "~/crawl/*.txt"))
    scan = os.scandir
    monkeypatch.setattr("os.scandir", lambda path: refuse_to_list() if path == "crawl" else scan(path))
    with pytest.raises(MissingInputError, match=r"'corpus\.files': crawl may not be read; make it readable"):
        check(own_files(config, "crawl/**"))


def refuse_to_list():
    raise PermissionError(13, "Permission denied")


def test_a_mirror_that_is_not_there_or_may_not_be_read_is_told_so(config, tmp_path, monkeypatch):
    """That it may not be read ended with "make the directory writable"."""
    with pytest.raises(MissingInputError, match=r"'mirror': no directory /no/such; give the one with"):
        check(merge(config, {"source": "mirror", "mirror": "/no/such"}))
    monkeypatch.setattr("os.scandir", lambda path: refuse_to_list())
    with pytest.raises(MissingInputError, match=r"'mirror': /locked may not be read; make it readable"):
        check(merge(config, {"source": "mirror", "mirror": "/locked"}))


def test_a_size_of_the_curve_without_steps_is_named(config):
    changed = merge(config, {"sweep": {"sizes": ["tiny", "small"], "curve": {"sizes": ["tiny", "small"]}}})
    with pytest.raises(ConfigError, match=r"'sweep.curve.steps' has no steps of size 'small'"):
        check(changed)


def test_a_directory_of_glues_files_or_out_of_domain_sets_that_is_not_there_is_named(config):
    with pytest.raises(MissingInputError, match=r"'glue.files': no directory /no/such"):
        check(merge(config, {"glue": {"source": "files", "files": "/no/such"}}))
    with pytest.raises(ConfigError, match=r"'glue.robustness.files' names no directory"):
        check(merge(config, {"glue": {"robustness": {"sets": ["hans"]}}}))


def test_the_text_null_of_the_command_line_is_null_where_texts_are_allowed_too(config):
    told = merge(config, {"imported": "null", "experiment": "null", "glue": {"robustness": {"files": "null"}}})
    check(told)
    assert told["imported"] is told["experiment"] is told["glue"]["robustness"]["files"] is None


def test_imported_scores_are_no_experiment_of_another_name(config):
    with pytest.raises(ConfigError, match="'imported' and 'experiment' are both set"):
        check(merge(config, {"imported": "theirs", "experiment": "mine"}))


HUB = "add source=hub (or source=mirror mirror=DIR)"


@pytest.mark.parametrize("scale", ["laptop", "single-gpu", "paper"])
def test_a_scale_for_real_text_is_not_planned_on_stand_ins_without_a_word(config, scale):
    """65 GPU-hours on text made from documentation, where source=hub was forgotten."""
    chosen = merge(config, {"scale": scale})
    with pytest.raises(ConfigError) as refused:
        refuse_stand_ins(chosen, "corpus")
    told = f"config: 'scale' is {scale}, but 'source' is embedded, stand-ins made from documentation; {HUB}"
    assert str(refused.value) == told
    with pytest.raises(ConfigError, match="'glue.source' is embedded, .*; set it to hub or mirror$"):
        refuse_stand_ins(merge(chosen, {"source": "hub", "glue": {"source": "embedded"}}), "glue")
    for stage in ("corpus", "glue"):
        refuse_stand_ins(merge(chosen, {"source": "hub"}), stage)
        refuse_stand_ins(merge(chosen, {stage: {"source": "files"}}), stage)
        refuse_stand_ins(config, stage)
    own = {"tasks": {"irony": {}}, "sweep": {"tasks": ["irony"]}}
    refuse_stand_ins(merge(chosen, own), "glue")  # whose rows are the user's
    with pytest.raises(ConfigError, match="'source' is embedded"):
        refuse_stand_ins(merge(chosen, {**own, "sweep": {"tasks": ["irony"], "suites": ["blimp"]}}), "glue")


@pytest.mark.parametrize("key", ["raw", "shards", "checkpoints"])
def test_braces_in_a_path_are_refused_and_not_taken_for_a_wildcard(config, key):
    with pytest.raises(ConfigError, match=rf"'storage\.{key}': /data/{{x}} has braces, .*; rename it or link to it$"):
        check(merge(config, {"storage": {key: "/data/{x}"}}))


def test_files_below_a_folder_with_braces_are_refused_but_those_behind_a_link_to_it_are_read(config, tmp_path):
    folder = tmp_path / "crawl {2024}"
    folder.mkdir()
    (folder / "a.jsonl").touch()
    with pytest.raises(ConfigError, match=r"'corpus\.files': .*/crawl \{2024\}/a\.jsonl has braces"):
        check(own_files(config, folder / "*.jsonl"))
    (tmp_path / "link").symlink_to(folder)
    check(own_files(config, tmp_path / "link/*.jsonl"))


DECODER = {"sweep": {"hosts": ["encoder", "decoder"]}}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pretrain": {"steps": 50, "warmup_steps": 51}}, ("pretrain.warmup_steps", "pretrain.steps")),
        ({**DECODER, "hosts": {"decoder": {"steps": 60, "warmup_steps": 99}}}, ("hosts.decoder.warmup_steps",)),
        ({**DECODER, "hosts": {"decoder": {"steps": 60}}}, ("pretrain.warmup_steps", "hosts.decoder.steps")),
    ],
)
def test_a_warm_up_that_outlasts_the_training_does_not_train_below_the_rate_in_silence(root, changes, told):
    """Nor where a schedule goes on after the last step, as the demo's does."""
    config = read_config(root, {})
    with pytest.raises(ConfigError) as refused:
        check(merge(config, changes))
    assert all(f"'{key}'" in str(refused.value) for key in told)


def test_fewer_steps_than_the_curve_has_are_told_with_the_curves_key(root):
    """`pretrain={steps: 50}` ended with "step 200 is never saved"."""
    short = {"pretrain": {"steps": 50, "warmup_steps": 5}}
    with pytest.raises(
        ConfigError, match=r"^config: 'sweep\.curve\.steps' has 200 of size tiny, .*curve: \{sizes: \[\]\}"
    ):
        check(merge(read_config(root, {}), short))
    check(merge(read_config(root, {}), {**short, "sweep": {"curve": {"sizes": []}}}))  # the last step is always kept
    other = {"sweep": {"curve": {"steps": {"tiny": [200, 300]}}}}
    with pytest.raises(
        ConfigError, match=r"'sweep\.curve\.steps' has 300 of size tiny, no multiple of .*save_every' \(200"
    ):
        check(merge(read_config(root, {}), other))
