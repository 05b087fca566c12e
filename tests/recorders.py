"""What takes the place of CUDA graphs on a CPU."""

from contextlib import nullcontext


class Repeating:
    """Repeats a step by computing it again; `graph_of` may make of it what a bad recording would."""

    def __init__(self, graph_of=lambda run: run) -> None:
        self.refusal, self.recorded, self.graph_of = "", 0, graph_of

    def aside(self):
        return nullcontext()

    def record(self, run):
        self.recorded += 1
        return self.graph_of(run)


def failing(run):
    run()
    raise RuntimeError("operation not permitted\nwhen stream is capturing")
