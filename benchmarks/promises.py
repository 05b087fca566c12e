"""The figures of `make bench-pretrain`: what each is made of, and what is promised."""

from collections.abc import Callable

from benchmarks.measure import Figure
from benchmarks.protocol import OPERATORS, PAPER_BATCH, STOCK, Protocol, settings_of

Seconds = dict[str, float]
"""One round: seconds by the name of what took them, one after another; only `<size>: peak` is in FLOP/s."""


def ratio(first: str, second: str, scale: float = 1.0) -> Callable[[Seconds], float]:
    """How many times the second the first is, in one round; `scale` is 100 for per cent."""
    return lambda round: scale * round[first] / round[second]


def figures(size: str, protocol: Protocol, flops: dict[str, float]) -> list[Figure[Seconds]]:
    """What is promised of one size; `flops` holds the operations of a step of each contestant of ours."""
    return [
        *speed_figures(size, protocol),
        *operator_figures(size, protocol),
        *overhead_figures(size, protocol),
        *mfu_figures(size, flops),
    ]


def speed_figures(size: str, protocol: Protocol) -> list[Figure[Seconds]]:
    """Tokens per second beside those of each peer; the target is set beside STOCK."""
    return [
        Figure(
            f"{size}: tokens/s, {attention}, {recipe} / {peer}", "×",
            ratio(f"{size}: {peer}", f"{size}: {attention}, {recipe}"),
            at_least=protocol.speed.get(size) if recipe == protocol.promising and peer == STOCK else None,
        )
        for peer in protocol.peers
        for recipe in protocol.recipes
        for attention in OPERATORS
    ]  # fmt: skip


def operator_figures(size: str, protocol: Protocol) -> list[Figure[Seconds]]:
    """The paper's operators beside the original."""
    return [
        Figure(
            f"{size}: step time, {attention} / original, {recipe}", "×",
            ratio(f"{size}: {attention}, {recipe}", f"{size}: original, {recipe}"), at_most=1,
        )
        for recipe in protocol.recipes
        for attention in ("symmetric", "pairwise")
    ]  # fmt: skip


def overhead_figures(size: str, protocol: Protocol) -> list[Figure[Seconds]]:
    """What a run does beside computing steps."""
    step, interval = f"{size}: original, {protocol.promising}", settings_of().save_every
    return [
        Figure(f"{size}: data path / step time", "%", ratio(f"{size}: assembling", step, 100), at_most=2),
        Figure(
            f"{size}: checkpoint / {interval:,} steps", "%",
            ratio(f"{size}: saving", step, 100 / interval), at_most=2,
        ),
    ]  # fmt: skip


def mfu_figures(size: str, flops: dict[str, float]) -> list[Figure[Seconds]]:
    """Share of the card's measured rate in a dense bf16 product; none without operations of steps."""
    return [
        Figure(
            f"{name}: MFU", "%",
            lambda round, name=name: 100 * flops[name] / round[name] / round[f"{size}: peak"],
            at_least=45 if size == "base" and name.endswith("fast") else None,
        )
        for name in flops
    ]  # fmt: skip


COLLATOR = Figure(
    f"data path, {PAPER_BATCH} sequences: collator / ours", "×", ratio("collating", "assembling"), at_least=40
)
RESUME = Figure(
    "resume at demo scale, beside imports: one step, validation, end", "s",
    lambda round: round["resuming"] - round["importing"], at_most=5,
)  # fmt: skip
