import pytest
import yaml

from symbert import config as configuration
from symbert.checks import check
from symbert.config import merge
from symbert.errors import ConfigError
from symbert.settings import GlueSettings, hash_of, settings_from
from symbert.suites import SUITES

FINE_TUNED = {suite.name for suite in SUITES.values() if suite.tasks}


@pytest.fixture
def paper(root):
    return yaml.safe_load((root / "config.yaml").read_text())


def test_the_configuration_holds_the_papers_values(paper):
    """§3.3, §3.4 and appendix A of arXiv 2406.06366, and the authors' code where the paper is silent."""
    pretrain, glue, corpus = paper["pretrain"], paper["glue"], paper["corpus"]
    assert (pretrain["steps"], pretrain["batch_size"], pretrain["warmup_steps"]) == (200_000, 256, 10_000)
    assert (pretrain["learning_rate"], pretrain["adam_epsilon"], pretrain["mask_probability"]) == (1e-4, 1e-12, 0.15)
    assert pretrain["steps"] * pretrain["batch_size"] * corpus["pack"]["sequence_length"] == 26_214_400_000
    assert (glue["epochs"], glue["batch_size"], glue["learning_rate"], glue["warmup_ratio"]) == (5, 16, 1e-5, 0.1)
    assert (corpus["filter"]["min_harmful_perplexity"], corpus["filter"]["max_harmful_perplexity"]) == (5.0, 1e5)
    assert len(corpus["filter"]["blocked_categories"]) == 11
    assert len(paper["sweep"]["curve"]["steps"]["base"]) == 18 and paper["sweep"]["finetune_seeds"] == [1, 2, 3, 4, 5]


def test_the_experiment_is_named_after_scale_and_source_unless_named(config):
    assert configuration.experiment_name(config) == "demo-embedded"
    assert configuration.experiment_name({**config, "experiment": "mine"}) == "mine"
    mixed = merge(config, {"glue": {"source": "mirror"}})
    assert configuration.experiment_name(mixed) == "demo-embedded-mirror"


def test_each_stage_may_have_a_source_of_its_own(config):
    mixed = merge(config, {"source": "hub", "glue": {"source": "embedded"}})
    values = configuration.sections(mixed)
    assert values["corpus_source"]["source"] == "hub" and values["corpus_source"]["root"] is None
    assert values["glue_source"]["source"] == "embedded" and values["glue_source"]["root"] is None


def test_sweep_axes_are_in_the_reports_settings_alone_so_that_adding_one_reruns_nothing_else(config):
    before = configuration.sections(config)
    more = merge(config, {"sweep": {"attention": ["original"], "finetune_seeds": [1, 2, 3], "sizes": ["tiny"]}})
    after = configuration.sections(more)
    assert {name for name in before if before[name] != after[name]} == {"report"}
    assert before["report"]["runs"] == [["tiny", name, 1] for name in config["sweep"]["attention"]]
    assert after["report"]["runs"] == after["report"]["curve_runs"] == [["tiny", "original", 1]]


@pytest.mark.parametrize("changes", [{"harmful_model": "en.binary"}, {"blocklist_url": "https://mirror.example/ut1"}])
@pytest.mark.parametrize("source", ["embedded", "mirror", "hub", "files"])
def test_another_model_of_harmful_text_or_blocklist_downloads_no_part_again(config, source, changes):
    """The blocklist is for the filter; what it says, and not where it came from, makes filter_part run again."""
    told = merge(config, {"source": "hub", "corpus": {"source": source}, "mirror": "/here"})
    before = configuration.sections(told)
    after = configuration.sections(merge(told, {"corpus": changes}))
    assert {name for name in before if before[name] != after[name]} <= {"blocklist_source"}
    for section in ("corpus_source", "filter", "intake"):
        assert after[section] == before[section]


def test_rates_are_in_no_settings_so_that_correcting_one_reruns_nothing(config):
    faster = merge(config, {"rates": {"gpu_flops": 9e14, "job_seconds": 0.1}})
    assert configuration.sections(faster) == configuration.sections(config)


def filter_section(config, chosen):
    return configuration.sections(merge(config, {"corpus": {"filter": chosen}}))["filter"]


def test_both_spellings_of_no_filter_are_the_same_settings(config):
    """Another spelling filtered everything again, and so did a key of a filter that is off."""
    spelt = filter_section(config, configuration.NO_FILTER)
    assert filter_section(config, {"rules": []}) == spelt == {**configuration.NO_FILTER, "annotations": "published"}
    off = {"blocked_categories": ["adult"], "match": "suffix", "min_harmful_perplexity": 7.0}
    assert filter_section(config, {"rules": [], **off}) == spelt
    assert filter_section(config, {"rules": [], "max_bad_fraction": 0.1}) == {**spelt, "max_bad_fraction": 0.1}


def test_a_key_of_a_filter_that_is_off_filters_nothing_again(config):
    by_category, by_perplexity = ({"rules": [name]} for name in ("categories", "perplexity"))
    chosen = filter_section(config, by_category)
    assert chosen == filter_section(config, {**by_category, "max_harmful_perplexity": 9.0})
    assert chosen != filter_section(config, {**by_category, "match": "suffix"})
    chosen = filter_section(config, by_perplexity)
    assert chosen == filter_section(config, {**by_perplexity, "categories_from": "metadata", "match": "suffix"})
    assert chosen != filter_section(config, {**by_perplexity, "max_harmful_perplexity": 9.0})


def own_files(config, pattern, **corpus):
    return merge(config, {"corpus": {"source": "files", "files": str(pattern), **corpus}})


def test_the_users_files_are_parts_named_by_their_path_below_the_common_folder(config, tmp_path):
    paths = ["CC-2023/000_1.jsonl.zst", "CC-2024/000_1.parquet", "CC-2024/x.v2.jsonl.gz"]
    for path in paths:
        (tmp_path / "crawl" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crawl" / path).touch()
    own = own_files(config, tmp_path / "crawl" / "**")
    check(own)
    expected = {"CC-2023-000_1": paths[0], "CC-2024-000_1": paths[1], "CC-2024-x-v2": paths[2]}
    assert configuration.files_of(own) == {name: f"{tmp_path}/crawl/{path}" for name, path in expected.items()}
    assert configuration.parts_of(own) == list(expected)
    assert configuration.annotations_of(own) == "computed"
    assert configuration.repositories_of(own) == ["oscar-corpus/harmful-kenlms", "google-bert/bert-base-uncased"]
    source = configuration.sections(own)["corpus_source"]
    assert (source["source"], source["root"]) == ("hub", None)
    source = configuration.sections({**own, "mirror": str(tmp_path)})["corpus_source"]
    assert (source["source"], source["root"]) == ("mirror", str(tmp_path))


def test_filters_that_are_not_chosen_are_in_no_settings_and_need_nothing(config):
    check(config)
    assert configuration.sections(config)["filter"]["rules"] == list(configuration.PAPERS_FILTERS)
    assert "rules" not in configuration.sections(config)["report"]
    computed = merge(config, {"corpus": {"annotations": "computed"}})
    assert configuration.needs_harmful_model(computed)
    for value in ("none", {"rules": "[]"}, {"rules": []}):
        none = merge(computed, {"corpus": {"filter": value}})
        check(none)
        values = configuration.sections(none)
        assert values["filter"]["rules"] == values["report"]["rules"] == []
        window = ("match", "min_harmful_perplexity", "max_harmful_perplexity")
        assert [values["report"][key] for key in window] == [None] * 3
        assert not configuration.needs_harmful_model(none)
        assert "oscar-corpus/harmful-kenlms" not in configuration.repositories_of(none)
    misspelt = merge(config, {"corpus": {"filter": {"rules": ["perplexty"]}}})
    with pytest.raises(ConfigError, match="did you mean 'perplexity'"):
        check(misspelt)


def test_a_part_is_named_by_the_words_of_its_path_in_any_alphabet(config, tmp_path):
    """No name begins with '-', which a command line would read as an option, and none is a path or empty."""
    names = {
        "(1) x.jsonl": "1-x",
        "--help.jsonl": "help",
        "a b (copy).jsonl": "a-b-copy",
        "корпус/часть 1.jsonl.zst": "корпус-часть-1",
        "日本語.parquet": "日本語",
        "naïve.jsonl.gz": "naïve",
        "$(x);'\n.jsonl": "x",
        "(!).jsonl": "part",
    }
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    named = configuration.files_of(own_files(config, tmp_path / "**"))
    assert named == {part: str(tmp_path / name) for name, part in names.items()}
    (tmp_path / "(?).jsonl").touch()
    with pytest.raises(ConfigError, match=r"/\(\?\)\.jsonl and .*/\(!\)\.jsonl would both be part part; rename one"):
        configuration.files_of(own_files(config, tmp_path / "**"))


def test_json_of_other_names_is_read_as_json_lines_are(config, tmp_path):
    """C4's own names among them."""
    names = ["c4-train.00000-of-01024.json.gz", "a.json", "b.ndjson", "c.ndjson.zst", "d.json.zst", "e.ndjson.gz"]
    for name in names:
        (tmp_path / name).touch()
    parts = ["a", "b", "c", "c4-train-00000-of-01024", "d", "e"]
    assert configuration.files_of(own_files(config, tmp_path / "*")) == {
        part: str(tmp_path / name) for part, name in zip(parts, sorted(names), strict=True)
    }


def test_text_tables_and_folders_of_datasets_are_parts(config, tmp_path):
    for name in (
        "a.txt",
        "b.csv.gz",
        "c.tsv",
        "d.arrow",
        "saved/state.json",
        "saved/data.arrow",
        "both/train/state.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "both/dataset_dict.json").touch()
    parts = {"a": "a.txt", "b": "b.csv.gz", "both": "both", "c": "c.tsv", "d": "d.arrow", "saved": "saved"}
    for pattern in ("*", "**", "**/*"):
        named = configuration.files_of(own_files(config, tmp_path / pattern))
        assert named == {part: str(tmp_path / path) for part, path in parts.items()}


def test_files_that_a_pattern_matches_are_not_left_out_without_a_word(config, tmp_path):
    for name in ("a.jsonl", "notes.md", "table.xlsx", "b.jsonl.bz2", "c.JSONL", "d.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "e.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError) as stop:
        check(own_files(config, tmp_path / "**"))
    others = ", ".join(str(tmp_path / name) for name in ("b.jsonl.bz2", "c.JSONL", "e.jsonl"))
    assert f"5 of 7 files that match {tmp_path}/** cannot be read: {others} and 2 more; " in str(stop.value)
    assert str(stop.value).endswith("narrow the pattern") and "\n" not in str(stop.value)
    assert list(configuration.files_of(own_files(config, tmp_path / "[ad].*[lt]"))) == ["a", "d"]


def test_a_tilde_is_the_home_folder_and_not_a_letter(config, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.jsonl").touch()
    glue = {"source": "files", "files": "~/", "robustness": {"files": "~/ood"}}
    own = merge(own_files(config, "~/*.jsonl", blocklist_url="~/ut1"), {"mirror": "~", "glue": glue})
    own = merge(own, {"storage": {"raw": "~/raw", "shards": "~/shards", "checkpoints": "~/checkpoints"}})
    check(own)
    assert configuration.files_of(own) == {"own": f"{tmp_path}/own.jsonl"}
    assert (own["mirror"], own["glue"]["files"], own["corpus"]["blocklist_url"]) == (
        str(tmp_path),
        f"{tmp_path}/",
        f"{tmp_path}/ut1",
    )
    assert own["storage"] == {name: f"{tmp_path}/{name}" for name in ("raw", "shards", "checkpoints")}
    assert own["glue"]["robustness"]["files"] == f"{tmp_path}/ood"
    check(paper := merge(config, {"corpus": {"blocklist_url": "https://ut1.example//a/~b"}}))
    assert paper["corpus"]["blocklist_url"] == "https://ut1.example//a/~b"


def test_how_pretraining_is_computed_is_in_no_settings(config):
    values = {"micro_batch_size": 4, "recompute_activations": True, "shard_parameters": True}
    values |= {"processes": 4, "nodes": 2}
    changed = merge(config, {"on_settings_change": "refuse", "pretrain": values})
    assert configuration.sections(changed) == configuration.sections(config)
    assert configuration.execution_options(changed) == [
        "--on-settings-change",
        "refuse",
        "--micro-batch-size",
        "4",
        "--recompute-activations",
        "--shard-parameters",
    ]
    assert configuration.execution_options(config) == ["--on-settings-change", "supersede"]


@pytest.mark.parametrize(
    ("changes", "sections"),
    [
        ({"glue": {"keep_finetuned": False}}, set()),
        ({"glue": {"robustness": {"noise": [0.3]}}}, {"robustness"}),
        ({"glue": {"epochs": 2}}, {"glue", "report"}),
        ({"glue": {"max_length": 32}}, {"task", "blimp", "report"}),
        ({"glue": {"warmup_ratio": 0.2}}, {"report", *FINE_TUNED}),
        ({"recipe": "fast"}, {"pretrain", "report", *FINE_TUNED}),
        ({"sweep": {"untrained": True}}, set()),
    ],
)
def test_a_key_changes_the_settings_of_the_stages_that_it_concerns(config, changes, sections):
    before, after = (configuration.sections(merge(config, more)) for more in ({}, changes))
    assert {name for name in before if before[name] != after[name]} == sections


def test_the_report_knows_the_hash_of_the_settings_that_its_scores_must_have(config):
    values = configuration.sections(config)
    glue = settings_from(values["glue"], GlueSettings, "test")
    assert values["report"]["settings_hash"] == hash_of(glue)


def test_a_settings_file_is_outdated_when_it_says_something_else_or_is_damaged(tmp_path):
    path = tmp_path / "pretrain.json"
    assert not configuration.is_outdated(str(path), {"steps": 20}), "absent: its rule makes it anyway"
    for text, outdated in (('{"steps": 20}', False), ('{"steps": 20, "seed": null}', True), ('{"steps"', True)):
        path.write_text(text)
        assert configuration.is_outdated(str(path), {"steps": 20}) == outdated


def test_a_suite_is_fine_tuned_as_glue_but_for_its_own_keys(paper):
    """One operator is compared under one protocol per suite: what its publisher says, and else the paper's."""
    own = merge(paper, {"glue": {"learning_rate": 3e-4, "epochs": 7}, "suites": {"superglue": {"batch_size": 4}}})
    values = configuration.sections(own)
    protocol = {key: (values["glue"][key], values["superglue"][key]) for key in values["glue"]}
    differing = {key: pair for key, pair in protocol.items() if pair[0] != pair[1]}
    assert differing == {"epochs": (7, 10), "batch_size": (16, 4)} and values["superglue"]["learning_rate"] == 3e-4
    assert (values["task"]["max_length"], values["superglue_task"]["max_length"]) == (128, 256)
    assert "suites" not in values["report"], "as before suites had protocols"
    chosen = configuration.sections(merge(own, {"sweep": {"suites": ["glue", "superglue"]}}))["report"]
    settings = settings_from(values["superglue"], GlueSettings, "here")
    assert chosen["suites"] == {"superglue": hash_of(settings)} and chosen["settings_hash"] != hash_of(settings)


def test_pairs_have_the_keys_of_rows_and_none_of_training(paper):
    values = configuration.sections(merge(paper, {"suites": {"blimp": {"max_evaluation_examples": 9}}}))
    assert values["blimp"] == {"max_length": 128, "max_evaluation_examples": 9, "allow_partial": False}
    assert "blimp_task" not in values
    with pytest.raises(
        ConfigError, match=r"'suites.blimp.epochs': nothing is trained on blimp, which reads max_length,"
    ):
        check(merge(paper, {"suites": {"blimp": {"epochs": 3}}}))


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"superglu": {}}, "unknown key 'superglu' in 'suites'; did you mean 'superglue'"),
        ({"superglue": {"epoch": 3}}, "unknown key 'epoch' in 'suites.superglue'; did you mean 'epochs'"),
        ({"superglue": {"epochs": 0}}, "'suites.superglue.epochs' is 0, expected an integer ≥ 1"),
        ({"superglue": {"keep_finetuned": True}}, "unknown key 'keep_finetuned' in 'suites.superglue'"),
    ],
)
def test_a_key_that_no_protocol_has_is_refused(config, changes, refused):
    with pytest.raises(ConfigError, match=refused):
        check(merge(config, {"suites": changes}))
