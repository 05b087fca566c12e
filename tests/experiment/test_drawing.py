"""The diagram of the rules, and docs/architecture.md, which shows it."""

import re
import shlex

import pytest

from symbert import cli
from symbert.errors import DataError, SymbertError
from symbert.experiment import drawing
from symbert.experiment.drawing import EXHIBITS, diagram_of, draw_rules, edges_of, without_detours

GRAPH = """\
---
title: DAG
---
flowchart TB
	id0[all]
	id1[tabulate_runs]
	id2[pretrain_model]
	id3[write_settings]
	id4[draw_figure2]
	id5[write_page]
	style id0 fill:#D95757,stroke-width:2px,color:#333333
	id2 --> id1
	id2 --> id2
	id3 --> id2
	id2 --> id4
	id1 --> id5
	id4 --> id5
	id3 --> id5
	id5 --> id0
"""  # as Snakemake 9.27.1 prints it


@pytest.fixture
def page(root):
    return (root / "docs/architecture.md").read_text(encoding="utf-8")


def test_the_picture_of_the_page_is_what_its_command_draws(root, page, monkeypatch, capsys):
    monkeypatch.chdir(root)
    (command,) = re.findall(r"^`symbert (draw-rules [^`]*)`", page, re.M)
    words = shlex.split(command)
    at = words.index("--page")
    assert cli.main(words[:at]) == 0
    assert f"```mermaid\n{capsys.readouterr().out}```" in page, f"run: symbert {command}"


def test_every_folder_and_every_file_that_the_page_names_is_there(root, page):
    """A page about the whole house is the first to be wrong when something moves."""
    for link in re.findall(r"\]\(([^)#]+)", page):
        assert (root / "docs" / link).exists(), link
    for folder in (path.parent.name for path in (root / "src/symbert").glob("*/__init__.py")):
        assert f"](../src/symbert/{folder})" in page
    code = page.partition("## Where things are")[2]
    files = {name for name in re.findall(r"`([\w/]+\.(?:py|smk|yaml|toml))`", code) if not name.startswith("tests/")}
    homes = [root, root / "workflow", root / "workflow/rules", root / "src/symbert"]
    homes += [path for path in (root / "src/symbert").iterdir() if path.is_dir()]
    assert [name for name in files if not any((home / name).is_file() for home in homes)] == []


def test_every_addition_of_the_test_is_marked_on_the_page(page):
    from test_one_place import PLACES

    marked = re.findall(r"^\| an? ([\w ]+) ✓ \|.*\| (\d)", page, re.M)
    words = {"configuration key": "key", "metric of a training step": "metric"}
    assert {words.get(name, name): int(places) for name, places in marked} == PLACES


def test_exhibits_are_one_node_and_settings_and_targets_none(root):
    edges, stages = edges_of(GRAPH, root)
    assert edges == {("pretrain_model", EXHIBITS), (EXHIBITS, "write_page")}
    assert stages == {"pretrain_model": "pretrain", EXHIBITS: "report", "write_page": "report"}
    assert diagram_of(edges, stages).splitlines() == [
        "flowchart TB",
        "  subgraph pretrain",
        "    pretrain_model",
        "  end",
        "  subgraph report",
        '    tables_and_figures["tables and figures"]',
        "    write_page",
        "  end",
        "  pretrain_model --> tables_and_figures",
        "  tables_and_figures --> write_page",
    ]


def test_an_arrow_beside_a_longer_way_is_left_out():
    assert without_detours({("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d")}) == {
        ("a", "b"),
        ("b", "c"),
        ("c", "d"),
    }


def test_rules_that_wait_for_each_other_keep_their_arrows():
    """Parts of a corpus wait for the count of a batch, which their documents make."""
    around = {("filter_part", "tokenize_part"), ("tokenize_part", "count_batch"), ("count_batch", "filter_part")}
    assert without_detours(around | {("filter_part", "count_batch")}) == around


def test_the_diagram_is_written_into_a_page_and_the_rest_stays(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.setattr(drawing, "print_graph", lambda *options: GRAPH)
    page = tmp_path / "page.md"
    page.write_text("before\n```mermaid\nold\n```\nafter\n```mermaid\nother\n```\n")
    draw_rules(page)
    text = page.read_text()
    assert text.startswith("before\n```mermaid\nflowchart TB\n") and "old" not in text
    assert text.endswith("write_page\n```\nafter\n```mermaid\nother\n```\n")
    page.write_text("no block")
    with pytest.raises(DataError, match="page.md: no ```mermaid block to write the diagram into; add one"):
        draw_rules(page)


def test_another_output_of_snakemake_is_an_error(root):
    with pytest.raises(SymbertError, match="snakemake --rulegraph: no graph; run snakemake --dry-run to see why"):
        edges_of("digraph {}", root)
