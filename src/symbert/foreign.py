"""Models from elsewhere: folders in Hugging Face's layout, and repositories of the hub, with tokenizers of their own.

Imports no torch.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from symbert.sizes import MEMORY_OF_A_THREAD, threads_of
from symbert.steps import RESULTS, File, Step

PARAMETERS_FOR_A_GPU = 10_000_000  # of a model, its embeddings among them
Rate = Annotated[float, Meta(gt=0, le=1e38)]


class Tokenizer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The tokenizer of a foreign model: its files by name, which count by their content, and what decides its class."""

    model_type: str  # of config.json
    files: dict[str, File]
    tokenizer_class: str = ""  # of config.json, which few have

    @property
    def folder(self) -> Path:
        """Where its files lie, from the folder with results/."""
        return Path(next(iter(self.files.values())).path).parent


class ForeignModel(Step, frozen=True):
    """A model that was pre-trained elsewhere, as it is fine-tuned here: the files that are read of it."""

    name: str  # in the configuration
    model_type: str  # of config.json
    parameters: int  # by the bytes of the weights: what a job needs follows from it
    content: dict[str, File]  # config.json and the weights, by name; weights of the hub count by path and commit
    tokenizer: Tokenizer
    repository: str = ""  # owner/name of the hub; of a folder, which may be moved, none
    commit: str = ""  # of the repository

    @property
    def folder(self) -> str:
        """Where its settings.json lies; its files may lie elsewhere."""
        return f"{RESULTS}/models/{self.name}-{self.key}"

    @property
    def checkpoint(self) -> Path:
        """The folder of its files."""
        return Path(self.content["config.json"].path).parent

    @property
    def threads(self) -> int:
        """CPU threads of a process that trains it."""
        return threads_of(self.parameters)

    @property
    def memory(self) -> int:
        """MB of host memory of a process that trains it."""
        return MEMORY_OF_A_THREAD * self.threads

    @property
    def needs_gpu(self) -> bool:
        """Whether a GPU is worth asking for."""
        return self.parameters > PARAMETERS_FOR_A_GPU

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Where it comes from: owner/name of the hub, or a folder."""
        return self.repository or str(self.checkpoint)

    @property
    def weights(self) -> dict[str, File]:
        """The files of its weights, by name."""
        return {name: file for name, file in self.content.items() if name.endswith((".safetensors", ".bin"))}

    def reads(self) -> list[str]:
        """The paths that a job waits for."""
        return [file.path for file in (*self.content.values(), *self.tokenizer.files.values())]


class Tuning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the learning rate of each task is chosen: of these rates, by the mean score over these fine-tuning seeds,
    which are not among those that are reported."""

    rates: list[Rate]
    seeds: list[int]
