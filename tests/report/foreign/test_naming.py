"""Names of folders say which run they are of: by a pattern, by a mapping, or as the paper's authors write them."""

from pathlib import PurePosixPath

import pytest

from symbert.errors import DataError, UsageError
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.rows import run_of

PAIRWISE = "bert_base_pairwise_20240204-093411"
KEYS = ("size", "attention", "step", "finetune_seed")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{PAIRWISE}-seed3_mnli_20240207-232501", ("base", "pairwise", None, 3, "mnli")),
        ("bert_base_vanilla_20240204-093411-ckpt30000_rte_20240208-171539", ("base", "original", 30_000, 1, "rte")),
        ("bert_small_symmetric_20240204-194202-seed5_cola", ("small", "symmetric", None, 5, "cola")),
        ("bert_base_symmetric_20240204-093411-ckpt6000-seed2_sst2", ("base", "symmetric", 6_000, 2, "sst2")),
        ("bert_tiny_shared_20250101-000000-seed2-ckpt6000_qqp", ("tiny", "shared", 6_000, 2, "qqp")),
        ("bert_small_original-gain_20250101-000000_wnli", ("small", "original-gain", None, 1, "wnli")),
        ("bert_large_my.own_20250101-000000_sts-b", ("large", "my.own", None, 1, "sts-b")),
        (PAIRWISE, ("base", "pairwise", None, 1, None)),
    ],
)
def test_an_authors_name_says_size_operator_step_seed_and_task(name, expected):
    """Sizes and operators need not be known here."""
    run, task = Naming().run_named(name, "here")
    assert (*(run[key] for key in KEYS), task) == expected
    assert run["pretrain_seed"] == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "bert_small_symmetric_20240204-194202-seed5_cola_1",
            "is no run's name; expected bert_<size>_<operator>_<date>",
        ),
        (f"{PAIRWISE}-seed1-seed2_rte", "is no run's name"),
        (f"{PAIRWISE}-epoch3_rte", "unknown tag 'epoch'; choose from ckpt, seed"),
        ("checkpoint-500", "'checkpoint-500' is no run's name; expected .*, or give --pattern or --mapping"),
    ],
)
def test_another_name_is_refused_with_the_remedy(name, problem):
    with pytest.raises(DataError, match=f"^here: .*{problem}"):
        Naming().run_named(name, "here")


@pytest.mark.parametrize(
    ("pattern", "name", "run", "task"),
    [
        ("{model}_{task}_s{finetune_seed}", "my_model_v2_sst2_s4", ("", "my_model_v2", None, 4), "sst2"),
        ("{model}_{task}_s{finetune_seed}", "runs/of/small-mine_MNLI-mm_s1", ("small", "mine", None, 1), "MNLI-mm"),
        (
            "{model}/{task}/seed-{finetune_seed}",
            "x/roberta-base/STS-B/seed-12",
            ("", "roberta-base", None, 12),
            "STS-B",
        ),
        ("{size}-{operator}-*-{step}k_{task}", "large-low_rank-2024-30k_rte", ("large", "low_rank", 30, 1), "rte"),
        ("{operator}.{task}", "a+b.cola", ("", "a+b", None, 1), "cola"),
        ("{model}_{task}", "bert_mnli_mismatched", ("", "bert", None, 1), "mnli_mismatched"),
    ],
)
def test_a_pattern_says_which_part_of_a_path_is_what(pattern, name, run, task):
    found, word = Naming(pattern).run_named(name, "here")
    assert tuple(found[key] for key in KEYS) == run and word == task


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("{model}_{tusk}", "has '{tusk}'; did you mean 'task'?"),
        ("{model}_{}", "has '{}'; choose from model"),
        ("{model}_{model}", "has '{model}' twice; keep one of them"),
        ("{task}_s{finetune_seed}", "expected {model} or {operator} in it"),
        ("{model", "has '{'"),
    ],
)
def test_a_pattern_that_is_none_is_refused(pattern, problem):
    with pytest.raises(UsageError) as caught:
        Naming(pattern).run_named("x", "here")
    assert problem in str(caught.value)


def test_a_path_that_is_not_like_the_pattern_is_named_with_the_tasks():
    with pytest.raises(DataError, match="^here: 'bert_squad_s1' is not like the pattern '.*', of the tasks cola, "):
        Naming("{model}_{task}_s{finetune_seed}").run_named("runs/bert_squad_s1", "here")


def test_a_model_with_a_slash_is_refused():
    with pytest.raises(DataError, match="here: the attention 'a/b' has a '/'"):
        run_of({"model": "a/b"}, "here")


@pytest.fixture
def mapping(tmp_path):
    """Writes a mapping; returns its names."""

    def make(*lines):
        file = tmp_path / "names.csv"
        file.write_text("\n".join(lines) + "\n")
        return Naming(mapping=file)

    return make


def test_a_mapping_says_it_for_each_folder(mapping, tmp_path):
    naming = mapping("folder,model,task,finetune_seed,step", "runs/a,small-mine,rte,2,", "runs/b,other,cola,1,300")
    run, task = naming.run_at(tmp_path / "runs/a", tmp_path, "here")
    assert (*(run[key] for key in KEYS), task) == ("small", "mine", None, 2, "rte")
    run, task = naming.run_at(tmp_path / "runs/b/file.json", tmp_path, "here")
    assert (*(run[key] for key in KEYS), task) == ("", "other", 300, 1, "cola")
    assert naming.folders == {PurePosixPath("runs/a"), PurePosixPath("runs/b")}
    with pytest.raises(DataError, match="here: 'runs/c' is no folder of .*names.csv; add it"):
        naming.run_at(tmp_path / "runs/c", tmp_path, "here")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["directory,model", "a,b"], "no column 'folder'; add it"),
        (["folder,model,sed", "a,b,1"], "unknown column 'sed'; did you mean"),
        (["folder,model", "a,b", "a,c"], "row 3: 'a' is there twice; keep one of them"),
        (["folder,model,finetune_seed", "a,b,one"], "finetune_seed is one, expected a whole number"),
    ],
)
def test_a_mapping_that_is_none_is_refused(mapping, tmp_path, lines, problem):
    with pytest.raises(DataError, match=problem):
        mapping(*lines).run_at(tmp_path / "a", tmp_path, "here")


def test_a_pattern_and_a_mapping_are_not_both_taken(tmp_path):
    with pytest.raises(UsageError, match="--pattern and --mapping are both given; choose one"):
        Naming("{model}", tmp_path / "names.csv")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_name_that_a_spreadsheet_would_compute_is_refused(name):
    """It was believed that all csv guards such names: files of scores have names as they are."""
    for fields in ({"operator": name}, {"model": f"small-{name}"}, {"operator": "mine", "size": name}):
        with pytest.raises(DataError, match="is a formula for a spreadsheet; begin it with a letter"):
            run_of(fields, "scores.csv:row 2")
    assert run_of({"operator": f"mine{name}"}, "here")["attention"] == f"mine{name}"
