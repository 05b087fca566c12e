"""What models are called, and the order in which sizes and operators appear in every table and figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from symbert.architectures import ENCODER
from symbert.operators import OPERATORS, Operator
from symbert.sizes import SIZES, Shape, by_parameters

UNTRAINED = "no pre-training"


def model_name(size: str, attention: str, step: int = 1, architecture: str = ENCODER) -> str:
    """What a model is called: 'tiny-original', at step 0 'tiny-original, no pre-training', 'decoder tiny-original'.

    Models from elsewhere have no size, and imported ones may have none.
    """
    name = f"{size}-{attention}" if size else attention
    return f"{'' if architecture == ENCODER else f'{architecture} '}{name}{'' if step else f', {UNTRAINED}'}"


def family(size: str, architecture: str = ENCODER) -> str:
    """What the models of a size and architecture are called: 'BERT-tiny', or 'decoder, tiny'."""
    if architecture != ENCODER:
        return f"{architecture}, {size}"
    return f"BERT-{size}" if size else "models from elsewhere"


@dataclass(frozen=True)
class Known:
    """The sizes, operators and foreign models of an experiment, by which tables and figures are in order."""

    shapes: Mapping[str, Shape] = field(default_factory=lambda: SIZES)
    operators: Mapping[str, Operator] = field(default_factory=lambda: OPERATORS)
    models: Sequence[str] = ()

    def sizes(self, names: Iterable[str]) -> list[str]:
        """Distinct sizes, smallest first; unknown ones follow by name."""
        return sorted(set(names), key=lambda name: _rank(name, by_parameters(self.shapes)))

    def attentions(self, names: Iterable[str]) -> list[str]:
        """Distinct operators, the paper's first, then foreign models; unknown ones follow by name."""
        return sorted(set(names), key=lambda name: _rank(name, [*self.operators, *self.models]))

    def rank(self, size: str, attention: str) -> tuple[tuple[int, str], tuple[int, str]]:
        """Sort key of a model: by size, then by operator."""
        return _rank(size, by_parameters(self.shapes)), _rank(attention, [*self.operators, *self.models])


OF_PROJECT = Known()  # of imported scores, and where there is no experiment


def _rank(name: str, known: Sequence[str]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known), name)
