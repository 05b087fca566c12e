"""What is said of an experiment as a whole: whether it is the paper's, and what stands in for the paper's data."""

import pandas as pd
import pytest
import yaml

from report.written import collected
from symbert.configuration import ArchitectureKeys, Pretrain, merge, report_of, typed
from symbert.experiment.sweep import Grid
from symbert.report import published
from symbert.report.claims import CHECKS
from symbert.report.setting import note_of, other_finetuning, other_scores, other_training, sentences_of
from symbert.report.tables.corpus import settings_table
from test_paths import EFFECTS

# How often, and how it is computed.
COMPUTED = {*Pretrain.__struct_fields__}.difference(ArchitectureKeys.__struct_fields__)
NO_SCIENCE = ("evaluate_every", "save_every", *COMPUTED)
NO_SCORES = ("source", "revision", "files", "allow_partial", "keep_finetuned", "robustness")  # of GLUE's own rows


@pytest.fixture
def paper(root):
    """The configuration as it stands, from the publishers."""
    base = yaml.safe_load((root / "workflow/defaults.yaml").read_text())
    return merge(base, {"scale": "paper", "source": "hub"})


def report_settings_of(config):
    return report_of(typed(config))


def others(config):
    """Whether pre-training, and whether fine-tuning, is other than the paper's."""
    data = collected(report_settings_of(config))
    return other_training(data) is not None, other_finetuning(data) is not None


def changed(config, stage, key):
    """The configuration with another value that the key may have."""
    value = config[stage][key]
    if isinstance(value, str):
        return merge(config, {stage: {key: "mine:own"}})
    unset = "checkpoint" if key == "init_from" else 1
    other = value / 2 or 0.5 if isinstance(value, float) else unset if value is None else value * 2 + 1
    return merge(config, {stage: {key: other}})


def test_the_configuration_as_it_stands_is_the_papers_but_for_deviations_that_are_told(paper, root):
    deviations = {key: value for key, (value, _) in published.DEVIATIONS.items()}
    assert report_settings_of(paper).settings == published.SETTINGS | deviations and others(paper) == (False, False)
    frame = settings_table(collected(report_settings_of(paper))).frame
    numbers = {key: f"deviation {number}" for key, (_, number) in published.DEVIATIONS.items()}
    assert {key: told for key, told in zip(frame["setting"], frame["differs"], strict=True) if told} == numbers
    told = (root / "docs/deviations.md").read_text()
    assert all(f"\n| {number} |" in told for _, number in published.DEVIATIONS.values())


@pytest.mark.parametrize(
    "change",
    [
        {"filter": {"blocked_categories": []}},
        {"filter": {"categories_from": "metadata"}},
        {"annotations": "computed"},
        {"revision": "v2"},
    ],
)
def test_a_corpus_of_other_documents_is_not_the_papers_and_no_claim_is_judged(paper, change):
    """Their parts had another key, but the page called them the paper's and judged its claims."""
    data = collected(report_settings_of(merge(paper, {"corpus": change})))
    assert other_training(data) and other_finetuning(data) and other_scores(data)
    assert all(obstacle is None or obstacle(data) for _, obstacle in CHECKS.values())


def test_what_changes_a_part_a_row_a_run_or_a_score_is_compared_with_the_paper(paper):
    """The settings of the page were a list by hand, from which some were missing."""
    usual = {
        "compile",
        "corpus.annotations",
        "corpus.filter.categories_from",
        "pretrain.learning_rate",
        "pretrain.schedule_steps",
    }  # the other value is the paper's
    determining = {"parts", "shards", "encoder", "rows", "scores"}
    for key, (value, kinds) in EFFECTS.items():
        if (
            kinds & determining
            and key not in usual
            and key.rpartition(".")[2] not in (*NO_SCIENCE, "sequences_per_shard")
        ):
            change = value
            for name in reversed(key.split(".")):
                change = {name: change}
            assert "sweep" in change or any(others(merge(paper, change))), key


def test_another_value_of_any_scientific_key_is_not_the_papers(paper):
    """Steps, batch and length alone were compared: a learning rate of 1e-3 got the authors' markers."""
    for key in (key for key in paper["pretrain"] if key not in NO_SCIENCE):
        assert others(changed(paper, "pretrain", key)) == (True, True), key
    for key in (key for key in paper["glue"] if key not in NO_SCORES):
        assert others(changed(paper, "glue", key)) == (False, True), key
    changes = [{"corpus": {"parts": 1}}, {"corpus": {"pack": {"max_documents": 1000}}}]
    changes += [{"precision": "fp32"}, {"corpus": {"source": "mirror"}, "mirror": "/here"}]
    changes += [{"corpus": {"pack": {"sequence_length": 128}}}, {"corpus": {"filter": {"match": "suffix"}}}]
    for change in changes:
        assert others(merge(paper, change)) == (True, True), change


def test_the_table_of_settings_says_the_checkpoint_that_training_began_from(paper):
    frame = settings_table(collected(report_settings_of(changed(paper, "pretrain", "init_from")))).frame
    (row,) = frame[frame["setting"] == "pretrain.init_from"].to_dict("records")
    assert row["here"] == "checkpoint" and row["differs"] is True


def test_how_often_and_how_a_run_is_computed_leave_it_the_papers(paper):
    for key in NO_SCIENCE:
        assert others(changed(paper, "pretrain", key)) == (False, False), key


def test_the_title_is_the_users_or_names_the_experiment(paper):
    assert report_settings_of(paper | {"title": "Mine"}).title == "Mine"
    assert report_settings_of(paper).title == "Paper: three operators on OSCAR-2301"


def test_stand_ins_partial_rows_and_seeds_are_told_in_every_file_and_on_the_page(report_settings, record, write_scores):
    def told(settings=None, **changes):
        records = [
            record("tiny", "original", 1800, task, seed, **changes) for task in ("rte", "cola") for seed in (1, 2)
        ]
        records[0] |= {"partial": True, "constant_prediction": True}
        sweep = {"tasks": ["rte", "cola"], "finetune_seeds": [1, 2]}
        data = collected(report_settings(settings), sweep=sweep, scores=write_scores(records))
        return note_of(data), " ".join(sentences_of(data))

    note, page = told(stand_in=True)
    assert note == (
        "A demo: stand-in corpus; stand-in tasks, not GLUE; partial: rte; mean score of 2 of 9 columns; one "
        "pre-training seed."
    )
    assert "† One class is predicted throughout in 1 of 4 fine-tunings." in page
    assert "its numbers are not comparable with the paper’s" in page
    note, page = told(published.SETTINGS)
    assert "stand-in" not in note + page and "not comparable" not in page


def test_rows_that_were_trained_on_and_places_that_were_moved_are_counted_on_the_page(
    report_settings, record, write_scores
):
    counts = {"rte": {"seen": {"rte": [60, 160]}}, "wsc": {"seen": {"wsc": [0, 104]}, "moved": {"validation": 2}}}
    page = ""
    for suite, task in (("glue", "rte"), ("glue", "cola"), ("superglue", "wsc")):
        sweep = {"tasks": [task], "finetune_seeds": [1, 2]}
        changes = {"metrics": {task: 0.5}, "majority": {task: 0.5}, **counts.get(task, {})}
        records = [record("tiny", "original", 1800, "rte", seed) | {"task": task} | changes for seed in (1, 2)]
        page += " ".join(sentences_of(collected(report_settings(), suite, sweep, scores=write_scores(records))))
    assert page.count("rte: 60 of 160 rows have the token ids of a training row.") == 1
    assert page.count("wsc: in 2 rows a published place") == 1 and "cola:" not in page


def test_a_grid_that_reads_the_corpus_is_told_beside_grids_of_small_texts(report_settings):
    axes = {"architecture": ["encoder"], "size": ["tiny"], "attention": ["original"]}
    losses = pd.DataFrame([[3.0, 2.0]], index=[1], columns=[50, 100])
    texts, corpus = Grid("texts", {"text": ["copying"], **axes}, [1], []), Grid("corpus", axes, [1], [])
    assert "small texts: copying" in note_of(collected(report_settings(), grids=[(texts, [losses])]))
    assert "stand-in corpus" not in note_of(collected(report_settings(), grids=[(texts, [losses])]))
    assert "stand-in corpus" in note_of(collected(report_settings(), grids=[(texts, [losses]), (corpus, [losses])]))
