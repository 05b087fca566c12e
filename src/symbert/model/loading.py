"""A checkpoint of this project as the model that was trained, of any host, without transformers.

`AutoModelForMaskedLM` and the like load the encoder's, too, after `import symbert.model.bert`.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from symbert.errors import ConfigError
from symbert.files import extracted_again
from symbert.hosts import ENCODER, HOSTS, host_named_in
from symbert.model.configuration import Configuration
from symbert.model.network import Classifier, HostModel, SpanModel
from symbert.model.weights import read_checkpoint, refuse_wrong, weights_of


def load_model(checkpoint: Path) -> HostModel:
    """The model of a directory that `extract` wrote, with its head, in evaluation mode.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random.
    """
    config, kept = read_checkpoint(checkpoint)
    with building(checkpoint):
        model = model_of(config)
    expected = weights_of(model)
    refuse_wrong(checkpoint / "model.safetensors", kept, expected, {*kept, *expected})
    model.to(next(iter(kept.values())).dtype)
    model.load_state_dict(kept, strict=False)  # tied weights have one name in the file
    return model.eval()


def model_of(config: Configuration) -> HostModel:
    """The model of a configuration, its weights not yet drawn: of the host or the head whose class it names, or an
    encoder with the head for masked tokens."""
    for head, kind in {"SequenceClassification": Classifier, "QuestionAnswering": SpanModel}.items():
        if head in str(config.architectures):
            return kind(config, len(config.id2label))
    module, name = HOSTS[host_named_in(config.architectures) or ENCODER].model.split(":")
    return getattr(importlib.import_module(module), name)(config)


@contextmanager
def building(checkpoint: Path) -> Iterator[None]:
    """ConfigError that names the checkpoint's config.json where the block cannot build a model of it."""
    path = checkpoint / "config.json"
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except Exception as error:  # transformers and torch raise what they like, of a dozen types
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{path}: no model can be built ({said}); {extracted_again(path)}") from error
