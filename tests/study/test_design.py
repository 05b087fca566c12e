"""Study files: what they declare, and what they may not."""

from pathlib import Path

import pytest
import yaml

from symbert.errors import ConfigError, MissingInputError
from symbert.study.design import cell_of, points_of, read_study, seeds_by_cell

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")

STUDIES = Path(__file__).parents[2] / "studies"
TINY = {
    "title": "A tiny study",
    "sizes": {},
    "operators": {},
    "texts": {"copies": {"source": "copying", "vocabulary": None, "sequence_length": 16, "validation_rows": 32}},
    "pretrain": {
        **{"steps": 40, "batch_size": 8, "learning_rate": 1e-3, "warmup_steps": 5, "weight_decay": 0.01},
        **{"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-6, "gradient_clip": 1.0},
        **{"mask_probability": 0.15, "dropout": 0.0, "evaluate_every": 5, "save_every": 40, "precision": "fp32"},
        **{"recipe": "faithful", "schedule_steps": 400},
    },
    "grids": {
        "both": {
            "axes": {
                **{"text": ["copies"], "size": ["tiny"], "attention": ["original", "pairwise"]},
                "learning_rate": [1e-3, 2e-3],
            },
            "seeds": [1, 2],
        }
    },
    "contrasts": {
        "operator": {
            **{"question": "Does pairwise leave earlier?", "grid": "both"},
            **{"first": {"attention": "pairwise"}, "second": {"attention": "original"}, "expected": "shorter"},
        }
    },
}


def study_file(tmp_path: Path, **changes: object) -> Path:
    """A tiny study with other values of some keys."""
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({**TINY, **changes}, sort_keys=False))
    return path


@pytest.mark.parametrize(
    "path",
    sorted(plan.with_suffix(".yaml") for plan in STUDIES.glob("*.md")),
    ids=lambda path: path.stem,
)
def test_every_study_of_the_project_is_read_and_has_its_text(path):
    study = read_study(path)
    assert seeds_by_cell(study)
    text = path.with_suffix(".md").read_text()
    assert "## Question" in text and "## Analysis" in text


def test_a_grid_is_the_product_of_its_axes(tmp_path):
    study = read_study(study_file(tmp_path))
    cells = [(cell.attention, cell.pretrain.learning_rate) for _, cell in points_of(study, study.grids["both"])]
    assert cells == [("original", 1e-3), ("original", 2e-3), ("pairwise", 1e-3), ("pairwise", 2e-3)]


def test_a_cell_of_two_grids_is_trained_once_for_the_seeds_of_both(tmp_path):
    both = TINY["grids"]["both"]
    more = {"axes": {**both["axes"], "learning_rate": [1e-3]}, "seeds": [2, 3]}
    by_cell = seeds_by_cell(read_study(study_file(tmp_path, grids={"both": both, "more": more})))
    seeds = {(cell.attention, cell.pretrain.learning_rate): seeds for cell, seeds in by_cell.items()}
    assert len(seeds) == 4
    assert seeds["original", 1e-3] == [1, 2, 3] and seeds["original", 2e-3] == [1, 2]


def test_a_definition_describes_the_whole_cell(tmp_path):
    for cell in seeds_by_cell(read_study(study_file(tmp_path))):
        assert cell_of(cell.text_name, cell.definition) == cell


def test_cells_differ_in_their_name_when_anything_differs(tmp_path):
    names = [cell.name for cell in seeds_by_cell(read_study(study_file(tmp_path)))]
    longer = {"copies": {**TINY["texts"]["copies"], "sequence_length": 24}}
    names += [cell.name for cell in seeds_by_cell(read_study(study_file(tmp_path, texts=longer)))]
    more = {**TINY["pretrain"], "steps": 50}
    names += [cell.name for cell in seeds_by_cell(read_study(study_file(tmp_path, pretrain=more)))]
    assert len(set(names)) == 12


def axes(**changes: object) -> dict:
    """The tiny study's grid with other axes."""
    both = TINY["grids"]["both"]
    kept = {key: value for key, value in {**both["axes"], **changes}.items() if value is not None}
    return {"both": {**both, "axes": kept}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grids": axes(depth=[2])}, r"'grids\.both\.axes' has 'depth'; choose from text, size, attention, steps"),
        ({"grids": axes(size=None)}, r"'grids\.both\.axes' lacks 'size'; add a list"),
        ({"grids": axes(text=["novels"])}, r"'grids\.both\.axes\.text' has 'novels', which 'texts' lacks"),
        (
            {"grids": axes(attention=["original"])},
            "compares attention pairwise, which the grid both lacks",
        ),
        ({"grids": {}}, r"'contrasts\.operator\.grid' is both, which 'grids' lacks"),
        ({"grids": axes(steps=[4])}, r"'pretrain\.warmup_steps' is 5, more than the 4 steps of 'grids\.both'"),
        ({"questions": []}, "questions"),
    ],
)
def test_a_wrong_study_is_refused_with_its_key(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        read_study(study_file(tmp_path, **changes))


def test_a_study_that_there_is_not_is_refused_with_those_that_there_are(tmp_path):
    """The configuration of an experiment beside them is none."""
    study_file(tmp_path).with_suffix(".md").touch()
    (tmp_path / "experiment.yaml").write_text("scale: demo\n")
    with pytest.raises(MissingInputError, match=r"none\.yaml: no such study; there are tiny"):
        read_study(tmp_path / "none.yaml")
