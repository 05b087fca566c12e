"""The benchmark of the graph measures what it says, and judges it by its targets."""

from benchmarks.graph import EXPERIMENTS, FIGURES, MANY, PAPER, contestants
from benchmarks.measure import Usage
from benchmarks.tables import figure_table


def round_of(wall, memory, many):
    """A round in which the paper's graph took so many seconds and MB, that of many parts so many seconds, and the empty
    one 2 s of CPU."""
    return {"an empty Snakefile": Usage(2, 2, 70), PAPER: Usage(9, wall, memory), MANY: Usage(many, many, 600)}


def test_time_and_memory_of_the_papers_graph_have_targets():
    good, bad = (figure_table(FIGURES, [round_of(*found)]) for found in ((14.9, 399, 179), (15.1, 401, 181)))
    assert good.count(" met ") == 3 and "missed" not in good
    assert bad.count("**missed**") == 3 and "| 7.00 s | 7.00–7.00 | – | |" in bad


def test_each_experiment_is_planned_in_the_folder_of_its_own_and_none_is_run(tmp_path):
    commands = {one.name: one.jobs[0][0] for one in contestants(tmp_path)}
    assert list(commands) == ["an empty Snakefile", *EXPERIMENTS]
    assert all("--dry-run" in command for command in commands.values())
    assert (tmp_path / "empty/Snakefile").read_text() == ""
    assert commands[PAPER][-2:] == ["scale=paper", "source=hub"]
