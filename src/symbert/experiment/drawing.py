"""The rules of an experiment as a mermaid diagram, which docs/architecture.md shows."""

import re
from pathlib import Path

from symbert.commit import PROJECT
from symbert.errors import DataError, SymbertError
from symbert.experiment.plan import print_graph
from symbert.files import publish
from symbert.project import STAGES, stages_of_rules

EXHIBITS = "tables and figures"  # one node: each has a rule of its own
WITHOUT_DATA = ("all", "write_settings")
BLOCK = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.S)

Edges = set[tuple[str, str]]


def draw_rules(
    page: Path | None = None,
    scale: str | None = None,
    configfile: list[Path] | None = None,
    config: list[str] | None = None,
) -> None:
    """Print the rules of the chosen experiment by stage as a mermaid diagram, or write it into a Markdown page.

    All tables and figures are one node. An arrow is left out where a way over other rules leads to the same rule. The
    options are those of Snakemake, and --scale. DataError for a page without a block of mermaid.
    """
    edges, stages = edges_of(print_graph("--rulegraph mermaid-js", scale, configfile, config), PROJECT)
    diagram = diagram_of(without_detours(edges), stages)
    if page is None:
        print(diagram, end="")
        return
    text = page.read_text(encoding="utf-8")
    if not BLOCK.search(text):
        raise DataError(f"{page}: no ```mermaid block to write the diagram into; add one")
    with publish(page) as temporary:
        temporary.write_text(BLOCK.sub(lambda _: diagram, text, count=1), encoding="utf-8")


def edges_of(graph: str, project: Path) -> tuple[Edges, dict[str, str]]:
    """Which rule gives data to which, in a graph that Snakemake printed, and the stage of each rule."""
    stages = stages_of_rules(project) | {EXHIBITS: "report"}
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", graph, re.M))
    if not names:
        raise SymbertError("snakemake --rulegraph: no graph; run snakemake --dry-run to see why")
    nodes = {key: rule if rule in (*stages, *WITHOUT_DATA) else EXHIBITS for key, rule in names.items()}
    arrows = [(nodes[giver], nodes[taker]) for giver, taker in re.findall(r"^\s*(id\d+) --> (id\d+)$", graph, re.M)]
    edges = {edge for edge in arrows if edge[0] != edge[1] and not set(edge) & set(WITHOUT_DATA)}
    return edges, {rule: stages[rule] for edge in edges for rule in edge}


def without_detours(edges: Edges) -> Edges:
    """The edges but for those whose two rules a way over other rules connects too."""
    kept = set(edges)
    for giver, taker in sorted(edges):
        others = kept - {(giver, taker)}
        if taker in _reached(giver, others):
            kept = others
    return kept


def _reached(rule: str, edges: Edges) -> set[str]:
    """All rules to which a way leads."""
    reached, last = set(), {rule}
    while last:
        last = {taker for giver, taker in edges if giver in last} - reached
        reached |= last
    return reached


def diagram_of(edges: Edges, stages: dict[str, str]) -> str:
    """Mermaid's text: a box per stage with its rules, and the arrows."""
    lines = ["flowchart TB"]
    for stage in STAGES:
        if rules := sorted(rule for rule in stages if stages[rule] == stage):
            lines += [f"  subgraph {stage}", *(f"    {_node(rule)}" for rule in rules), "  end"]
    lines += sorted(f"  {_key(giver)} --> {_key(taker)}" for giver, taker in edges)
    return "\n".join(lines) + "\n"


def _key(rule: str) -> str:
    return rule.replace(" ", "_")


def _node(rule: str) -> str:
    return f'{_key(rule)}["{rule}"]' if rule == EXHIBITS else rule
