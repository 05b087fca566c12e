import pytest

from symbert.errors import InputOutputError
from symbert.model.parameters import counts_of
from symbert.operators import OPERATORS, Operator
from symbert.paths import Run
from symbert.pretrain import storage
from symbert.pretrain.storage import StorageNeed, parameters_of, refuse_full, storage_of
from symbert.sizes import SIZES, VOCABULARY_SIZE

BASE = 109_514_298  # parameters with the original operator (paper, Table 2), as below


@pytest.mark.parametrize("size", SIZES)
def test_parameters_by_formula_are_those_of_the_model_itself_whatever_its_operator_and_vocabulary(size):
    counted = counts_of(size, list(OPERATORS))["parameters"]
    assert {name: parameters_of(Run(size, name, 1), VOCABULARY_SIZE) for name in OPERATORS} == counted
    fewer = (VOCABULARY_SIZE - 300) * (SIZES[size].hidden_size + 1)  # embeddings, tied with the head, and its biases
    assert parameters_of(Run(size, "pairwise", 1), 300) == counted["pairwise"] - fewer


def test_an_operator_without_a_formula_counts_as_the_original(monkeypatch):
    monkeypatch.setitem(OPERATORS, "miscounted", Operator("miscounted", "model.wrong_operators:Unmasked"))
    assert parameters_of(Run("base", "miscounted", 1), VOCABULARY_SIZE) == BASE


def test_storage_of_the_papers_base_run(brief):
    """200 kept steps of 4 bytes per parameter; 3 + 1 checkpoints of weights and two moments."""
    found = storage_of(BASE, brief(steps=200_000, save_every=1000))
    assert found == StorageNeed(weights=438_057_192, kept=200)
    assert found.weights_bytes == 87_611_438_400
    assert found.resume_bytes == 4 * 3 * 438_057_192 == 5_256_686_304


@pytest.mark.parametrize(("steps", "save_every", "kept"), [(30, 10, 3), (35, 10, 4), (5, 10, 1)])
def test_the_last_step_is_kept_too(brief, steps, save_every, kept):
    assert storage_of(1000, brief(steps=steps, save_every=save_every)).kept == kept


def leave_free(monkeypatch, free: int, mount) -> None:
    monkeypatch.setattr(storage, "free_space", lambda path: (free, mount))


def test_a_run_that_does_not_fit_is_refused_with_need_space_mount_and_remedy(tmp_path, monkeypatch):
    state = tmp_path / "state"
    leave_free(monkeypatch, 15 * 10**6, tmp_path)
    refuse_full(StorageNeed(10**6, 3), state)  # 3 MB + 12 MB: just enough
    leave_free(monkeypatch, 15 * 10**6 - 1, tmp_path)
    with pytest.raises(InputOutputError) as refused:
        refuse_full(StorageNeed(10**6, 3), state)
    assert str(refused.value) == (f"{state}: needs 15 MB, 15 MB free on {tmp_path}; free space there and run again")


def test_what_an_interrupted_run_has_written_is_not_needed_again(tmp_path, monkeypatch):
    for file, size in {
        "weights/step-00000010.safetensors": 1000,
        "resume/step-00000010/model.safetensors": 3000,
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(size))
    leave_free(monkeypatch, 2000 + 9000, tmp_path)
    refuse_full(StorageNeed(1000, 3), tmp_path)
    leave_free(monkeypatch, 2000 + 9000 - 1, tmp_path)
    with pytest.raises(InputOutputError, match="needs 11 kB"):
        refuse_full(StorageNeed(1000, 3), tmp_path)
