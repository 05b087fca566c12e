"""The pages that a GPU is asked for, with the CPU in its place and in tiny shapes."""

import math
import sys

import pytest
import torch

from benchmarks import gpu_check, gpu_devices, gpu_options, pretrain
from benchmarks.gpu_devices import DRY, attention, weights_of
from symbert.cli import main

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Evaluations of few rows."""
    monkeypatch.setattr(pretrain, "VALIDATION_ROWS", 8)


def cells_of(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_options_are_timed_beside_todays_step_and_compared_with_the_cpu_where_they_compute_something_else(
    tmp_path, monkeypatch
):
    """A kernel that this device does not have is a row that says so."""
    for name, value in {"TOKENS": 16, "VOCABULARY": 300, "UNTIMED": 1, "TIMED": 2}.items():
        monkeypatch.setattr(gpu_options, name, value)
    for name, value in {"ROWS": 32, "STEPS": 2, "SEQUENCES": 2}.items():
        monkeypatch.setattr(gpu_check, name, value)
    names = ["today", "numbers read at once, no graphs", "residual stream in bf16", "attention by cuDNN"]
    names += ["a batch of four micro-batches", "no dropout of attention weights"]
    page = tmp_path / "page.md"
    monkeypatch.setattr(
        sys, "argv", ["options", "--dry", "--sizes", "tiny", "--output", str(page), "--options", *names]
    )
    gpu_options.main()
    head, _, *rows = (cells_of(line) for line in page.read_text().splitlines() if line.startswith("|"))
    found = {row[1]: row[2:] for row in rows}
    assert list(found) == names and {len(row) for row in rows} == {len(head)}
    today, at_once, narrow, no_kernel, batch, kept = found.values()
    assert "**failed**" in no_kernel[0]
    assert today[-2:] != narrow[-2:] and at_once[-2:] == ["–", "–"] == kept[-2:]
    for row in (today, narrow):
        assert 0 < float(row[-2]) < 1e-2 and 0 < float(row[-1]) < 5e-2
    assert today[3] == "–" and all(row[3].endswith("×") for row in (at_once, narrow, batch, kept))
    sequences = {
        name: float(row[0]) * float(row[1].replace(",", "")) / 16_000 for name, row in found.items() if row != no_kernel
    }
    assert round(sequences["today"]) == 2 and round(sequences["a batch of four micro-batches"]) == 8


def test_dropout_made_for_flex_attention_drops_weights_after_the_softmax():
    """Each weight that is kept is 1 / (1 - p) times the softmax's, though the kernel knows no dropout."""
    torch.manual_seed(0)
    query, key = (torch.randn(2, 3, 64, 64) / 4 for _ in range(2))
    value = torch.eye(64).expand(2, 3, 64, 64).contiguous()
    with torch.no_grad():
        mixed, _ = gpu_options.attend_flexibly(None, query, key, value, None, dropout=0.1, scaling=0.5)
        again, _ = gpu_options.attend_flexibly(None, query, key, value, None, dropout=0.1, scaling=0.5)
        plain, _ = gpu_options.attend_flexibly(None, query, key, value, None, scaling=0.5)
    found, expected = mixed.transpose(1, 2), (0.5 * query @ key.transpose(2, 3)).softmax(-1)
    torch.testing.assert_close(plain.transpose(1, 2), expected)
    kept = found != 0
    torch.testing.assert_close(found[kept], expected[kept] / 0.9)
    assert (~kept).float().mean().item() == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / found.numel()))
    assert not torch.equal(mixed, again)


def test_the_page_on_dropout_shows_which_weights_a_kernel_drops():
    lines = []
    gpu_devices.dropout(lines.append, CPU, DRY)
    rows = {cells[0]: cells[1:] for cells in map(cells_of, lines[1:])}
    assert "**failed**" in rows["cuDNN"][0] and len(rows["cuDNN"]) == len(rows["products"])
    rate, _, kept, repeats, seeds, of_rows = rows["products"]
    assert float(rate) == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / (2 * 2 * 128**2)))
    assert float(kept) == pytest.approx(1, abs=1e-4) and repeats == "the same"
    assert float(seeds) == pytest.approx(0.18, abs=0.01) == float(of_rows)
    twice = weights_of(lambda *given: attention(None, *given) * 2, DRY.rows, CPU, 1)
    assert twice[twice != 0].mean().item() == pytest.approx(2 / 0.9, rel=1e-5)


def test_runs_of_equal_seeds_are_equal_on_a_cpu_and_those_of_another_seed_are_not(monkeypatch):
    """Trained in this process, and interrupted by nothing."""

    def trained(run, folder, stop_at=None):
        gpu_devices.write_json(folder / "run.json", gpu_devices.msgspec.to_builtins(run))
        assert main(["pretrain", str(folder), "--threads", "1"]) == 0

    monkeypatch.setattr(gpu_devices, "trained", trained)
    lines = []
    gpu_devices.repeating(lines.append, CPU, DRY._replace(training_steps=20, lengths=((16, 300),)))
    again, interrupted, other = (cells_of(line)[1:] for line in lines[1:])
    assert again == interrupted == ["none", "0.0e+00", "0.0e+00", "0 %", "0.00e+00", "0.0e+00"]
    assert other[0] == "10" and float(other[1]) > 0 and float(other[5]) > 0.5


def test_the_other_pages_have_a_number_in_each_place(tmp_path, capsys):
    lines, scope = [], DRY._replace(lengths=((16, 300), (17, 300)), shapes=((2, 8),))
    for section in (gpu_devices.plans, gpu_devices.memory, gpu_devices.lengths):
        section(lines.append, CPU, scope)
    plans, memory, *lengths = (cells_of(line) for line in lines if line.startswith("|"))
    assert float(plans[-1].partition(" / ")[0]) > 0
    assert len(memory) == 5 and memory[0] == "tiny" and "%" in memory[1]
    assert [row[:2] for row in lengths] == [["16", "300"], ["17", "300"]] and all(row[2].isdigit() for row in lengths)
    go = tmp_path / "go"
    go.touch()
    gpu_devices.finetune(go, tmp_path / "ready", CPU, scope)
    gpu_devices.first_step(CPU, scope)
    assert len(capsys.readouterr().out.split()) == 2 and (tmp_path / "ready").exists()
