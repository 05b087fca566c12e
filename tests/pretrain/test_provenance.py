import pytest
import torch

from symbert.files import read_json
from symbert.keys import Execution
from symbert.pretrain.provenance import (
    INCIDENTAL,
    SCIENTIFIC,
    SOFT,
    close_session,
    facts_of_machine,
    open_session,
)
from symbert.settings import PretrainSettings

FACTS = {
    "host": "node1",
    "commit": "0123abcd",
    "device": "cpu",
    "processor": "x, AVX2",
    "threads": 2,
    "processes": 1,
    "micro_batch_size": None,
    "precision": "fp32",
    "recipe": "faithful",
    "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
}


def test_each_session_has_its_facts_and_what_was_measured_last(tmp_path):
    path = tmp_path / "provenance.json"
    open_session(path, FACTS)
    close_session(path, step=10, step_seconds=None)
    close_session(path, step=20, step_seconds=0.5)
    open_session(path, FACTS)
    first, second = read_json(path)["sessions"]
    assert first.items() >= {**FACTS, "step": 20, "step_seconds": 0.5}.items()
    assert second.keys() == {*FACTS, "started"} and first.keys() - second.keys() == {"step", "step_seconds", "until"}


def test_a_session_on_the_same_machine_says_nothing(tmp_path, capsys):
    for _ in range(2):
        open_session(tmp_path / "provenance.json", FACTS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"threads": 4}, ["threads: 2 → 4"]),
        ({"device": "H"}, ["device: cpu → H"]),
        ({"processor": "y, AVX512"}, ["processor: x, AVX2 → y, AVX512"]),
        ({"processes": 2, "micro_batch_size": 8}, ["micro_batch_size: None → 8", "processes: 1 → 2"]),
        ({"versions": {"torch": "2.14.0", "numpy": "2.4.6"}}, ["versions.torch: 2.13.0 → 2.14.0"]),
        ({"versions": {"torch": "2.13.0"}}, ["versions.numpy: 2.4.6 → absent"]),
        ({"host": "node2"}, []),
    ],
)
def test_each_fact_that_may_change_bits_is_told_in_one_line(tmp_path, capsys, change, told):
    path = tmp_path / "provenance.json"
    open_session(path, FACTS)
    open_session(path, {**FACTS, **change})
    lines = capsys.readouterr().err.splitlines()
    assert [
        line.removeprefix(f"warning: {path}: ").partition(" since the session before; ")[0] for line in lines
    ] == told
    assert all("bits of the result may differ" in line for line in lines)


def test_every_fact_is_on_exactly_one_list(tmp_path):
    listed = [*SOFT, *SCIENTIFIC, *INCIDENTAL]
    assert len(listed) == len(set(listed)) and set(listed) == FACTS.keys()
    with pytest.raises(ValueError, match="on no list: temperature"):
        open_session(tmp_path / "provenance.json", {**FACTS, "temperature": 20})


def test_no_setting_of_the_science_is_soft():
    scientific = set(PretrainSettings.__struct_fields__)
    assert set(SCIENTIFIC) <= scientific and not scientific & {*SOFT, *Execution.__struct_fields__}


def test_the_facts_of_a_machine_are_on_the_lists_and_name_the_libraries():
    facts = facts_of_machine(torch.device("cpu"))
    assert facts.keys() <= {*SOFT, *INCIDENTAL} and facts["device"] == "cpu"
    assert facts["versions"]["torch"] == torch.__version__
    assert torch.backends.cpu.get_cpu_capability() in facts["processor"]
