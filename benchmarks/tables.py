"""Rounds as markdown tables."""

from collections.abc import Sequence

from benchmarks.measure import Figure, Round, Usage, Usages, spread


def figure_table(figures: Sequence[Figure[Round]], rounds: Sequence[Round]) -> str:
    """Median and range of each figure, and whether the median reaches the target."""
    rows = [_figure_row(figure, [figure.value(round) for round in rounds]) for figure in figures]
    return table("| figure | median | range over the rounds | target | |", "|---|---:|---:|---:|---|", rows)


def usage_table(once: Usages, rounds: Sequence[Usages]) -> str:
    """Median seconds and highest memory of each contestant; `once` holds what was not repeated."""
    rows = [_usage_row(name, [usage]) for name, usage in once.items()]
    rows += [_usage_row(name, [round[name] for round in rounds]) for name in rounds[0]]
    return table("| contestant | runs | CPU s | wall s | peak MB |", "|---|---:|---:|---:|---:|", rows)


def table(head: str, rule: str, rows: Sequence[str]) -> str:
    """A head, the rule below it, and rows, each a line of markdown."""
    return "\n".join([head, rule, *rows, ""])


def _figure_row(figure: Figure, values: Sequence[float]) -> str:
    found = spread(values)
    measured = f"| {figure.name} | {found.median:.2f} {figure.unit} | {found.low:.2f}–{found.high:.2f} "
    if figure.target is None:
        return measured + "| – | |"
    return measured + f"| {figure.target} {figure.unit} | {'met' if figure.met(found.median) else '**missed**'} |"


def _usage_row(name: str, usages: Sequence[Usage]) -> str:
    cpu, wall = (spread([getattr(usage, key) for usage in usages]).median for key in ("cpu", "wall"))
    return f"| {name} | {len(usages)} | {cpu:.2f} | {wall:.2f} | {max(usage.memory for usage in usages):.0f} |"
