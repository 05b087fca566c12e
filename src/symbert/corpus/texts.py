"""Small texts for `sweep.text`, one of them synthetic, as rows of token ids that pre-training reads."""

import hashlib
import importlib
import json
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from symbert.configuration import CODE, CustomText, read_by
from symbert.corpus.lines import read_lines
from symbert.corpus.shards import Learned, Manifest, Shard, unigram_entropy
from symbert.corpus.wordpiece import RAREST_CHARACTER, SPECIAL_TOKENS, TOKEN, encoder, write_vocabulary
from symbert.draws import permute, uniform
from symbert.errors import ConfigError, MissingInputError
from symbert.files import publish, sha256_of, together, write_json
from symbert.sources import DOCUMENTATION_PARTS, EMBEDDED, file_of, located, part_file
from symbert.steps import SETTINGS, File, Step, read_step

CHARACTERS = 3_000_000  # of a text, at most
DOCUMENTS = [f"{EMBEDDED}/{part_file(f'en_meta_part_{number}').location}" for number in DOCUMENTATION_PARTS]
SYMBOLS, SPAN, DISTANCE, COPIED = 64, 8, 16, 0.75  # of the synthetic language


class WriteText(Step, frozen=True):
    """The rows of a small text, which lie beside the manifest."""

    place: ClassVar[str] = "corpus/text"
    files: ClassVar[dict[str, str]] = {"manifest": "manifest.json"}

    text: CustomText
    read: str | list[File]  # what the text is made by, or read from


def read_of(source: str) -> str | list[File]:
    """What a small text is made by: a package and its version, code, nothing; or the files that it is read from."""
    return list(map(file_of, DOCUMENTS)) if source == "documentation" else read_by(source)


def documentation() -> str:
    """The documentation beside the demo's corpus, a paragraph of English from docstrings a line."""
    parts = map(Path, map(located, DOCUMENTS))
    return "\n".join(json.loads(line)["content"] for part in parts for line in read_lines(part))


def source() -> str:
    """Python code: the modules of transformers that define models, in the order of their names."""
    package = metadata.distribution(CODE)
    names = sorted(str(file) for file in package.files or () if Path(file).match("models/*/modeling_*.py"))
    if not names:
        raise MissingInputError(f"{CODE}: no module of a model is installed; install the package again")
    code, length = [], 0
    for name in names:
        code.append(Path(package.locate_file(name)).read_text(encoding="utf-8"))
        length += len(code[-1])
        if length >= CHARACTERS:
            break
    return "".join(code)


def copying() -> str:
    """A synthetic language: spans of SPAN symbols, of which a share COPIED repeats the symbols DISTANCE places before.

    Other symbols are drawn independently by Zipf's law. So only a symbol's copies predict it.
    """
    symbols = zipf(SYMBOLS, CHARACTERS, 1).reshape(-1, SPAN)
    for number in np.flatnonzero(uniform(2, np.arange(len(symbols))) < COPIED):
        if number >= DISTANCE // SPAN:
            symbols[number] = symbols[number - DISTANCE // SPAN]
    return written(symbols)


def zipf(kinds: int, count: int, *key: int) -> np.ndarray:
    """`count` symbols of range(kinds), drawn independently by Zipf's law; another `key` draws others."""
    weights = np.cumsum(1 / np.arange(1, kinds + 1))
    return np.searchsorted(weights / weights[-1], uniform(*key, np.arange(count)))


def written(symbols: np.ndarray) -> str:
    """Symbols as a text, a character each."""
    return "".join(map(chr, (symbols.ravel() + ord("a")).tolist()))


TEXTS: dict[str, Callable[[], str]] = {text.__name__: text for text in (documentation, source, copying)}


@together()
def write_text(output: Annotated[Path, "manifest.json beside its settings.json"], /) -> None:
    """Write `train-00000.npy` and `validation-00000.npy`, uint16 [rows, sequence_length], and the manifest `output` of
    a `WriteText`.

    Rows are cut one after the other, without marks between documents, and dealt to validation and training in a
    pseudo-random order; validation rows that occur among the training rows are kept.
    """
    step, file = read_step(output.parent, WriteText), output.parent / SETTINGS
    text = step.text
    if (today := read_of(text.source)) != step.read:
        raise ConfigError(
            f"{file}: the text '{text.source}' is {today} today, and was {step.read} when it was planned; run "
            "snakemake again, which writes it into another folder"
        )
    content = _content_of(text.source)
    if text.vocabulary is None:
        pieces, ids = _characters(content)
    else:
        vocabulary = output.parent / "vocab.txt"
        write_vocabulary(content.splitlines(), text.vocabulary, vocabulary)
        tokenizer = encoder(vocabulary)
        lines = tokenizer.encode_batch(content.splitlines(), add_special_tokens=False)
        pieces, ids = tokenizer.get_vocab(), np.concatenate([np.array(line.ids, TOKEN) for line in lines])
    rows = ids[: len(ids) // text.sequence_length * text.sequence_length].reshape(-1, text.sequence_length)
    if len(rows) <= text.validation_sequences:
        keys = "'validation_sequences' or 'sequence_length'" if len(rows) > 1 else "'sequence_length'"
        raise ConfigError(
            f"{file}: the text '{text.source}' has {len(rows)} rows of {text.sequence_length} tokens, and validation "
            f"takes {text.validation_sequences}; lower {keys} of 'texts'"
        )
    rows = rows[permute(np.arange(len(rows)), len(rows), text.sequence_length)]
    splits = {"validation": rows[: text.validation_sequences], "train": rows[text.validation_sequences :]}
    shards = []
    for split, part in splits.items():
        path = output.parent / f"{split}-00000.npy"
        with publish(path) as temporary, open(temporary, "wb") as file:
            np.save(file, part)
        shards.append(Shard(path.name, split, len(part), sha256_of(path)))
    special_tokens = {name: pieces[token] for name, token in SPECIAL_TOKENS.items()}
    vocabulary_sha256 = hashlib.sha256("\n".join(sorted(pieces, key=pieces.__getitem__)).encode()).hexdigest()
    counts = {split: len(part) for split, part in splits.items()}
    learned = Learned(text.sequence_length, len(pieces), vocabulary_sha256, special_tokens, counts, shards)
    entropy = unigram_entropy(splits["validation"], special_tokens)
    values = msgspec.structs.asdict(learned)
    write_json(output, Manifest(**values, hash=learned.learned_hash(), unigram_entropy=entropy))


def _content_of(source: str) -> str:
    """The beginning of a text. ConfigError where a function of the user's own returns something else."""
    module, _, name = source.partition(":")
    content = (getattr(importlib.import_module(module), name) if name else TEXTS[source])()
    if not isinstance(content, str):
        raise ConfigError(f"text '{source}': returned {type(content).__name__}, expected str; correct the function")
    return content[:CHARACTERS]


def _characters(content: str) -> tuple[dict[str, int], np.ndarray]:
    """A vocabulary of the special tokens and the characters that are not rare, and the id of each character."""
    counts = Counter(content)
    frequent = sorted(character for character, count in counts.items() if count >= RAREST_CHARACTER * len(content))
    pieces = {piece: number for number, piece in enumerate([*SPECIAL_TOKENS.values(), *frequent])}
    unknown = pieces[SPECIAL_TOKENS["unk"]]
    return pieces, np.array([pieces.get(character, unknown) for character in content], TOKEN)
