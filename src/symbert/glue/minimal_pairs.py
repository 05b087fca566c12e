"""BLiMP: which sentence of a minimal pair a checkpoint finds likelier, without fine-tuning (`symbert.blimp`)."""

import platform
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from symbert.blimp import PAIRS_OF_PARADIGM, PARADIGMS, published_pairs
from symbert.corpus.sources import RESOLVED, open_source
from symbert.corpus.wordpiece import SPECIAL_TOKENS, read_vocabulary
from symbert.errors import ConfigError, DataError, DivergedError, IntegrityError
from symbert.files import publish, read_json, sha256_of, write_json
from symbert.glue.kept import hashed
from symbert.glue.prepare import check_complete, pair_encoder, spread
from symbert.glue.sources import STAND_IN, fixed_commits, read_table
from symbert.hosts import ENCODER, JUDGING, host_named_in
from symbert.layout import Run
from symbert.model.likelihood import log_likelihoods
from symbert.model.loading import load_model
from symbert.model.network import HostModel
from symbert.pretrain.storage import extracted_sha256
from symbert.progress import Progress
from symbert.settings import MinimalPairSettings, SourceSettings, hash_of, read_settings
from symbert.training.device import facts_of_machine, pick_device

SENTENCES = ("sentence_good", "sentence_bad")
TEXTS = [pa.field(name, pa.string()) for name in (*SENTENCES, "field", "linguistics_term", "UID")]
METHODS = ("simple_LM_method", "one_prefix_method", "two_prefix_method", "lexically_identical")
PUBLISHED = pa.schema([*TEXTS, *(pa.field(name, pa.bool_()) for name in METHODS), pa.field("pair_id", pa.int64())])


def download_blimp(settings: Path, sources: Path, output: Path) -> None:
    """Write the pairs of all paradigms to one parquet file: paradigm, sentence_good, sentence_bad.

    DataError names a file that lacks a column, or has empty cells or pairs of another paradigm.
    """
    read, parts = read_settings(settings, SourceSettings), []
    source = open_source(read, fixed_commits(read_json(sources, RESOLVED)))
    progress = Progress("download blimp", len(PARADIGMS), "paradigms", interval=0)
    for done, paradigm in enumerate(PARADIGMS, start=1):
        file, fetched = published_pairs(paradigm), output.with_name(f".blimp-{paradigm}.parquet")
        try:
            source.fetch(file, fetched)
            table = read_pairs(fetched, file.location, paradigm)
        finally:
            fetched.unlink(missing_ok=True)
        parts.append(table)
        progress.update(done, paradigm)
    with publish(output) as temporary:
        pq.write_table(pa.concat_tables(parts), temporary, write_page_checksum=True)


def read_pairs(path: Path, location: str, paradigm: str) -> pa.Table:
    """paradigm, sentence_good and sentence_bad of a published file; DataError names `location` and the flaw."""
    table = read_table(path, location, "get the file again")
    for name in (*SENTENCES, "UID"):
        if name not in table.column_names or table[name].null_count or not pa.types.is_string(table[name].type):
            raise DataError(f"{location}: column '{name}' is absent, no text, or has empty cells; get the file again")
    others = set(table["UID"].to_pylist()) - {paradigm}
    if others:
        raise DataError(f"{location}: has pairs of {sorted(others)[0]}, expected {paradigm}; get the file again")
    marks = {STAND_IN: b"true"} if STAND_IN in (table.schema.metadata or {}) else {}
    named = table.select(["UID", *SENTENCES]).rename_columns(["paradigm", *SENTENCES])
    return named.replace_schema_metadata(marks)


def measure_blimp(
    checkpoint: Path,
    raw: Path,
    vocabulary: Path,
    settings: Path,
    size: str,
    attention: str,
    pretrain_seed: int,
    step: int,
    output: Path,
    threads: int,
    host: str = ENCODER,
) -> None:
    """Write the record of a checkpoint: for each paradigm, in how many pairs it finds the acceptable sentence likelier.

    Pairs whose sentences are equally likely are counted apart, as ties: a model that cannot tell them, for instance
    because both have the same word pieces, is neither right nor wrong. DataError where a paradigm has not as many
    pairs as published and `allow_partial` is false, IntegrityError for a vocabulary that is not the checkpoint's,
    ConfigError for a host without likelihoods, for a checkpoint of another operator or host, and for pairs that
    `max_length` makes equal, DivergedError for a likelihood that is not finite.
    """
    torch.set_num_threads(threads)
    if host not in (judges := JUDGING.values()):
        raise ConfigError(f"--host {host}: no host that gives likelihoods of sentences; give {' or '.join(judges)}")
    run = Run(size, attention, pretrain_seed, host)
    model = _model_of(run, checkpoint)
    wanted = read_settings(settings, MinimalPairSettings)
    pairs = read_table(raw, str(raw), "delete it and run download-blimp")
    parts = []
    for draw, paradigm in enumerate(PARADIGMS):
        part = pairs.filter(pc.field("paradigm") == paradigm)
        check_complete(f"blimp: {paradigm}", part.num_rows, PAIRS_OF_PARADIGM, wanted)
        parts.append(spread(part, wanted.max_evaluation_examples, draw))
    used, device = pa.concat_tables(parts), pick_device()
    tokenizer = pair_encoder(vocabulary, wanted.max_length)
    rows = [
        [encoding.ids for texts in used[name].chunks for encoding in tokenizer.encode_batch_fast(texts.to_pylist())]
        for name in SENTENCES  # a paradigm at a time: encodings are large
    ]
    for place, (good, bad) in enumerate(zip(*rows, strict=True)):
        if good == bad and len(good) == wanted.max_length:
            pair = f"{used['paradigm'][place]}: '{used[SENTENCES[0]][place]}'"
            raise ConfigError(
                f"config: 'suites.blimp.max_length' is {wanted.max_length}, which cuts the two sentences of a pair to "
                f"the same tokens ({pair}); raise it"
            )
    if (highest := max(max(map(max, each)) for each in rows)) >= model.config.vocab_size:
        raise IntegrityError(
            f"{vocabulary}: has token id {highest}, the model of {checkpoint} has {model.config.vocab_size:,} pieces; "
            "give the vocabulary of the checkpoint"
        )
    better = judged(model.to(device), *rows, read_vocabulary(vocabulary)[SPECIAL_TOKENS["mask"]])
    if lost := int((~np.isfinite(better)).sum()):
        raise DivergedError(
            f"{checkpoint / 'model.safetensors'}: the likelihoods of {lost:,} pairs are not finite; give an earlier "
            "step of its run"
        )
    of_paradigms = np.split(better, np.cumsum([part.num_rows for part in parts])[:-1])
    counts = {
        paradigm: {"pairs": each.size, "right": int((each > 0).sum()), "ties": int((each == 0).sum())}
        for paradigm, each in zip(PARADIGMS, of_paradigms, strict=True)
    }
    record = {
        **run.facts,
        "step": step,
        "paradigms": counts,
        "partial": len(used) != PAIRS_OF_PARADIGM * len(PARADIGMS),
        "stand_in": STAND_IN in (pairs.schema.metadata or {}),
        "settings_hash": hash_of(wanted),
        "versions": {"python": platform.python_version(), **facts_of_machine(device)["versions"]},
        "checkpoint_sha256": extracted_sha256(checkpoint),
        "data_sha256": sha256_of(raw),
    }
    write_json(output, hashed(record))


def _model_of(run: Run, checkpoint: Path) -> HostModel:
    """The model of a checkpoint; ConfigError where it has another operator or host than the run."""
    model = load_model(checkpoint)
    found = {"attention": model.config.attention, "host": host_named_in(model.config.architectures) or ENCODER}
    for name, value in found.items():
        if value != (expected := getattr(run, name)):
            raise ConfigError(
                f"{checkpoint / 'config.json'}: its {name} is {value}, expected {expected}; give the checkpoint of "
                f"that {name}, or --{name} {value}"
            )
    return model


def judged(model: torch.nn.Module, good: list[list[int]], bad: list[list[int]], mask_id: int) -> NDArray[np.float64]:
    """By how many nats each good row is likelier than the bad one; 0 of rows with the same ids, whatever rounding."""
    rows: dict[tuple[int, ...], int] = {}  # each once: pairs of a paradigm share sentences
    places = [[rows.setdefault(tuple(row), len(rows)) for row in side] for side in (good, bad)]
    likelihoods = log_likelihoods(model, list(rows), mask_id)
    return (likelihoods[places[0]] - likelihoods[places[1]]).numpy()
