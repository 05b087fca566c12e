"""Sweeps of any key: the runs that they plan, their keys, and what is refused."""

import re
from pathlib import Path

import pytest
import yaml

from symbert import syntax
from symbert.errors import ConfigError
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import lines_of, outputs_of
from symbert.experiment.project import read_chosen
from symbert.experiment.prune import removable
from symbert.experiment.status import announcement_of, status_of
from symbert.files import write_json
from symbert.paths import Run

pytestmark = pytest.mark.usefixtures("folder")

STUDIES = Path(__file__).parents[2] / "studies"
COPIES = {"copies": {"source": "copying", "vocabulary": None, "sequence_length": 16, "validation_sequences": 64}}
SIDES = {"first": {"learning_rate": 1e-3}, "second": {"learning_rate": 2e-3}}
STEADY = {  # however the demo is tuned
    "corpus": {"pack": {"sequence_length": 8}},
    "pretrain": {"steps": 1000, "schedule_steps": 1600, "learning_rate": 1.5e-3, "warmup_steps": 100},
    "sweep": {"attention": ["original", "pairwise"], "pretrain_seeds": [1, 2, 3]},
}
CONTRAST = {"question": "Why?", **SIDES, "expected": "equal"}


@pytest.fixture
def start(root, tmp_path):
    """The experiment of the demo with changes."""

    def start(**changes) -> Experiment:
        Path("changes.yaml").write_text(yaml.safe_dump(STEADY))
        Path("more.yaml").write_text(yaml.safe_dump(changes))
        return Experiment(read_chosen(root, None, [Path("changes.yaml"), Path("more.yaml")], None))

    return start


def runs_of(experiment: Experiment) -> set[tuple]:
    return {(run.attention, run.pretrain_seed, *run.variant) for run in experiment.runs}


def test_a_swept_rate_plans_a_run_at_each_value(start):
    experiment = start(sweep={"learning_rate": [1e-3, 2e-3]})
    rates = [("learning_rate", 1e-3), ("learning_rate", 2e-3)]
    assert runs_of(experiment) == {
        (name, seed, rate) for name in ("original", "pairwise") for seed in (1, 2, 3) for rate in rates
    }
    settings = [experiment.settings[f"{experiment.runs[run]}/run.json"] for run in experiment.runs]
    assert sorted(run["training"]["learning_rate"] for run in settings) == [1e-3] * 6 + [2e-3] * 6
    assert {run["training"]["steps"] for run in settings} == {1000}
    files = len(experiment.input_files)
    assert files == 3 * 12 + 1, "three files of each run and the manifest of their rows, and nothing is fine-tuned"


def test_the_value_that_a_key_has_anyway_is_the_run_that_there_is(start):
    usual, swept = start(), start(sweep={"learning_rate": [1.5e-3, 2e-3]})
    run = Run("tiny", "original", 1)
    assert swept.runs[run] == usual.runs[run]
    folder = f"{usual.runs[run]}/run.json"
    assert swept.settings[folder] == usual.settings[folder] and usual.key != swept.key


def test_a_swept_key_of_the_corpus_packs_it_anew_from_the_same_parts(start):
    experiment = start(sweep={"sequence_length": [8, 16]})
    manifests = {experiment.manifest(run) for run in experiment.runs}
    packed = [experiment.settings[manifest.replace("manifest", "settings")] for manifest in manifests]
    assert sorted(settings["pack"]["sequence_length"] for settings in packed) == [8, 16]
    assert packed[0]["parts"] == packed[1]["parts"]
    assert start().manifest(Run("tiny", "original", 1)) in manifests


def test_a_text_is_read_in_place_of_the_corpus(start):
    experiment = start(texts=COPIES, sweep={"text": ["copies"], "sequence_length": [16, 24]})
    manifests = {experiment.manifest(run) for run in experiment.runs}
    settings = [experiment.settings[manifest.replace("manifest", "settings")] for manifest in manifests]
    assert all(manifest.startswith("results/corpus/text-") for manifest in manifests)
    assert sorted(step["text"]["sequence_length"] for step in settings) == [16, 24]


TUNE = {"learning_rate": [2e-3, 1.5e-3], "seeds": [102, 101]}


def test_runs_at_a_rate_that_may_not_be_chosen_are_together_with_other_seeds_alone(start):
    """A batch of two rates would train the one that is not chosen, too."""
    changes = {"pretrain": {"together": 8, "dropout": 0.0}, "sweep": {"tune": TUNE, "pretrain_seeds": [1, 2, 3]}}
    experiment = start(**changes)
    batches = [{step.pretrain_seed for step in batch.runs} for batch in experiment.together.values()]
    rates = [{step.training.learning_rate for step in batch.runs} for batch in experiment.together.values()]
    tuning = [len(some) for seeds, some in zip(batches, rates, strict=True) if seeds == {101, 102}]
    assert tuning == [2, 2], "of each operator at both rates"
    assert [len(some) for seeds, some in zip(batches, rates, strict=True) if seeds == {1, 2, 3}] == [1] * 4
    assert len(batches) == 6


def test_a_tuned_sweep_plans_the_runs_of_a_sweep_over_rates_and_compares_those_of_chosen_ones(start):
    """The usual rate, 1.5e-3, is in no variant: such a run is that of an experiment without a sweep."""
    swept = start(sweep={"learning_rate": [1.5e-3, 2e-3], "pretrain_seeds": [1, 101, 102]})
    tuned = start(sweep={"tune": TUNE, "pretrain_seeds": [1]})
    (grid,) = tuned.tuned
    assert tuned.pretrainings == swept.pretrainings, "one folder however it is asked for"
    assert {run.pretrain_seed for run in tuned.runs} == {101, 102} and len(tuned.runs) == 2 * 2 * 2
    assert tuned.scores == {} and tuned.compared_of(grid) == [] == tuned.choices(grid)
    rates = tuned.rates_of(grid)
    assert rates in tuned.everything and len(tuned.inputs_of[rates]) == 2 * 8 and not tuned.chosen_files(grid)
    named = {"architecture": "encoder", "size": "tiny", "tried": []}
    best = {"original": 1.5e-3, "pairwise": 2e-3}
    cells = [named | {"attention": name, "best": rate, "common": 1.5e-3} for name, rate in best.items()]
    write_json(Path(rates), {"cells": cells})
    chosen = {("original", 1), ("pairwise", 1), ("pairwise", 1, ("learning_rate", 2e-3))}
    again = start(sweep={"tune": TUNE, "pretrain_seeds": [1]})
    for experiment in (tuned, again):
        runs = experiment.compared_of(grid)
        assert {(run.attention, run.pretrain_seed, *run.variant) for run in runs} == chosen and len(runs) == 3
        files = {f"{experiment.pretrainings[run].folder}/done.json" for run in runs}
        assert files <= {*experiment.chosen_files(grid)} and files.isdisjoint(experiment.input_files)
    assert len(again.runs) == 8 + 3 and again.key == tuned.key and again.record == tuned.record


def test_the_key_of_a_choice_hangs_on_what_it_reads_and_not_on_what_is_compared(start):
    def key(compared=(1,), **changes):
        return start(sweep={"tune": TUNE | changes, "pretrain_seeds": [*compared]}).choosing["sweep"].key

    same = key()
    assert key(compared=(1, 2)) == same == key(learning_rate=TUNE["learning_rate"][::-1], seeds=[101, 102])
    assert len({same, key(by="escape"), key(learning_rate=[1e-3, 2e-3])}) == 3


def test_status_plan_and_start_say_how_far_a_choice_is_and_what_follows_at_most(start):
    def told() -> str:
        experiment = start(sweep={"tune": TUNE, "pretrain_seeds": [1, 2, 3]})
        experiment.write()
        status, begun = status_of(experiment), [*announcement_of(experiment)]
        (line,) = (line for line in status if re.match("sweep (tries|tried) 2 learning rates at 2 points", line))
        assert f"  tuning   {line}" in begun and f"tuning: {line}" in lines_of(experiment, outputs_of(experiment))
        return line

    experiment = start(sweep={"tune": TUNE, "pretrain_seeds": [1, 2, 3]})
    (grid,) = experiment.tuned
    before = told()
    assert "8 of 8 pre-trainings to come" in before and "at most 9 of 9 pre-trainings to come" in before
    for run in experiment.tuning_of(grid)[:5]:
        write_json(Path(experiment.pretrainings[run].folder, "done.json"), {})
    assert "3 of 8 pre-trainings to come" in told()
    shared = [run for run in experiment.runs_of_grid(grid) if (run.attention, run.variant) == ("pairwise", ())]
    for run in shared:  # as of an experiment without a sweep
        write_json(Path(experiment.pretrainings[run].folder, "done.json"), {})
    assert "at most 6 of 9 pre-trainings to come" in told(), "pairwise at two rates, of which one is there"
    tried = [{"rate": rate, "losses": [], "escapes": [], "diverged": [], "mean": 0.0} for rate in (1.5e-3, 2e-3)]
    named = {"architecture": "encoder", "size": "tiny", "common": 1.5e-3, "tried": tried}
    cells = [named | {"attention": name, "best": 1.5e-3} for name in ("original", "pairwise")]
    write_json(Path(experiment.rates_of(grid)), {"cells": cells})
    assert "2 at the edge; 3 of 6 pre-trainings to come" in told()


def test_what_was_chosen_stays_while_an_experiment_names_it(start):
    experiment = start(experiment="mine", sweep={"tune": TUNE, "pretrain_seeds": [1]})
    experiment.write()
    (rates,) = map(experiment.rates_of, experiment.tuned)
    write_json(Path(rates), {"cells": []})
    assert not [*removable(Path("results"), surplus_weights=False)]
    Path("results/mine/experiment.json").unlink()
    assert Path(rates).parent in [*removable(Path("results"), surplus_weights=False)]


def test_a_grid_has_a_tuning_of_its_own_or_none(start):
    grids = {"plain": {"tune": None, "learning_rate": [1e-3]}, "more": {"tune": TUNE | {"seeds": [7]}}, "usual": {}}
    experiment = start(sweep={"tune": TUNE, "pretrain_seeds": [1], "grids": grids})
    assert {grid.name: grid.tune and [*grid.tune.seeds] for grid in experiment.grids} == {
        "plain": None,
        "more": [7],
        "usual": [102, 101],
    }
    assert {*experiment.choosing} == {*experiment.inputs["rates"]} == {"more", "usual"}
    assert all(file in experiment.input_files for file in experiment.inputs["rates"].values())


def test_grids_share_runs_that_are_equal_and_differ_in_their_axes(start):
    rates = {"learning_rate": [1e-3, 2e-3], "attention": ["original"], "pretrain_seeds": [1]}
    more = {"learning_rate": [1e-3], "pretrain_seeds": [1, 9]}
    experiment = start(sweep={"grids": {"rates": rates, "more": more}})
    low, high = ("learning_rate", 1e-3), ("learning_rate", 2e-3)
    names = ("original", "pairwise")
    assert runs_of(experiment) == {("original", 1, high), *((name, seed, low) for name in names for seed in (1, 9))}
    assert {name: len(folders) for name, folders in experiment.inputs["grids"].items()} == {"rates": 2, "more": 4}
    manifests = {name: [experiment.shards] * len(folders) for name, folders in experiment.inputs["grids"].items()}
    assert experiment.inputs["manifests"] == manifests and experiment.shards in experiment.input_files
    assert experiment.inputs["grids"]["rates"][0] == experiment.inputs["grids"]["more"][0]


MISTAKES = {
    r"unknown key 'learning_rte' in 'sweep'; did you mean 'learning_rate'": {"learning_rte": [1]},
    r"'sweep\.learning_rate\[0\]': expected": {"learning_rate": [-1]},
    r"'sweep\.learning_rate': expected": {"learning_rate": []},
    r"unknown key 'stps' in 'sweep\.grids\.a'; did you mean 'steps'": {"grids": {"a": {"stps": [1]}}},
    r"'sweep\.text' has 'copis'; did you mean 'copies'": {"text": ["copis"]},
    r"'sweep\.grids\.a\.attention' has 'pairwis'": {"grids": {"a": {"attention": ["pairwis"]}}},
    r"'pretrain\.warmup_steps' \(100\) is more than 'sweep\.steps' \(50\)": {"steps": [50]},
    r"'pretrain\.schedule_steps' \(1600\) is less than 'sweep\.steps' \(9000\)": {"steps": [9000]},
    "compares learning_rate 0.001, which its grid lacks": {"grids": {"a": {"contrasts": {"b": CONTRAST}}}},
    "compares learning_rate 0.002, which its grid lacks": {
        "grids": {"a": {"learning_rate": [1e-3], "contrasts": {"b": CONTRAST}}}
    },
    "the grid sweep lists 'learning_rate' and has it tuned": {"learning_rate": [1e-3], "tune": TUNE},
    "the grid a has the seed 102 in 'tune.seeds', which is in 'pretrain_seeds'": {
        "grids": {"a": {"tune": TUNE, "pretrain_seeds": [7, 102]}}
    },
    r"'sweep\.tune\.learning_rate': expected": {"tune": TUNE | {"learning_rate": [1e-3]}},
    r"'sweep\.tune\.by': invalid enum value 'loss'; did you mean 'final_loss'": {"tune": TUNE | {"by": "loss"}},
    r"unknown key 'seed' in 'sweep\.tune'; did you mean 'seeds'": {"tune": {"seed": [1], **TUNE}},
    r"'sweep\.max_documents': a small text is not packed so": {"text": ["copies"], "max_documents": [10, 20]},
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_wrong_sweep_is_refused_with_its_key(start, message):
    with pytest.raises(ConfigError, match=message):
        start(sweep=MISTAKES[message], texts=COPIES)


def test_a_text_of_ones_own_is_keyed_by_its_code_and_a_wrong_name_is_refused(start):
    manifests = []
    for word in ("ab", "ab", "abc"):
        Path("own.py").write_text(f"def text():\n    def txt(): ...\n    return {word!r}  # version {len(manifests)}\n")
        syntax._statements.cache_clear()
        syntax._definitions.cache_clear()
        source = {**COPIES["copies"], "source": "own:text"}
        experiment = start(texts={"mine": source}, sweep={"text": ["mine"]})
        (manifest,) = {experiment.manifest(run) for run in experiment.runs}
        manifests.append(manifest)
    assert manifests[0] == manifests[1] != manifests[2]
    for source, told in (
        ("copyin", "'texts' has the source 'copyin'; did you mean 'copying'"),
        ("own:txt", "own.py: no function txt in it"),
    ):
        with pytest.raises(ConfigError, match=told):
            start(texts={"mine": {**COPIES["copies"], "source": source}}, sweep={"text": ["mine"]})


@pytest.mark.parametrize(("name", "count"), [("plateau", 440), ("search", 8), ("dose", 160), ("width", 146)])
def test_the_studies_of_the_project_plan_their_runs_and_have_their_text(root, name, count):
    experiment = Experiment(read_chosen(root, None, [STUDIES / f"{name}.yaml"], None))
    assert len(experiment.runs) == len({*experiment.runs.values()}) == count
    text = (STUDIES / f"{name}.md").read_text()
    assert "## Question" in text and "## Analysis" in text
