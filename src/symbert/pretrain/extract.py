"""A kept step of a run, or the model that it started from, as a Hugging Face directory. Imports torch for step 0 alone,
because that takes longer than everything else."""

from pathlib import Path
from typing import Annotated

from symbert.corpus.shards import Pack
from symbert.corpus.wordpiece import encoder
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import (
    copy_file,
    read_json,
    read_json_lines,
    read_json_or_empty,
    sha256_of,
    together,
    verify_sha256,
    write_json,
    write_text,
)
from symbert.model.card import model_card
from symbert.paths import CHECKSUM, TOKENIZER_CONFIG
from symbert.pretrain.run import METRICS, OF_RUN, Done, kept_steps, kept_weights, lost_weights, read_run, weights_file
from symbert.pretrain.start import begin
from symbert.sources import located
from symbert.steps import read_step


@together()
def extract(
    folder: Annotated[Path, "folder of the run"], step: Annotated[int, "a step whose weights the run kept, or 0"], /
) -> None:
    """Write config.json, model.safetensors, the tokenizer and a model card for one kept step of a run into
    `folder`/step-`step`.

    Step 0 is the model before its first step, made again: it follows from the seed alone, or is the checkpoint that the
    run began from.
    What is known of the run stands in config.json under `pretraining`, for the model card and that of a later export;
    a loss only where the run was evaluated at this step. A tokenizer cuts texts at the length of the run's rows: later
    positions were never trained.
    Nothing is trained: a step that was not kept is a MissingInputError naming the nearest kept ones. Rows or a
    vocabulary other than the run learned are an IntegrityError.
    """
    run = read_run(folder)
    settings, manifest = run.training, run.manifest
    state, output, weights = folder / "state", folder / f"step-{step}", folder / f"step-{step}/model.safetensors"
    if step in kept_steps(settings) and (folder / "done.json").is_file() and not weights_file(state, step).is_file():
        raise MissingInputError(f"{weights_file(state, step)}: {lost_weights(folder, [step])}")
    kept = kept_weights(state, step) if step else None
    config = read_json(state / "config.json", {"model_type": str, "vocab_size": int})
    done = read_json(folder / "done.json", Done, OF_RUN)
    rows = read_json_or_empty(manifest)  # which may be gone
    found = rows.get("hash", done["corpus_hash"])
    if found != done["corpus_hash"]:
        raise IntegrityError(
            f"{manifest}: hash {found}, but {folder / 'done.json'} is of {done['corpus_hash']}; restore the corpus, or "
            f"move {folder} away to train the run again"
        )
    vocabulary = Path(located(read_step(manifest.parent, Pack).parts.vocabulary.path))
    # A piece more would give each word another's embedding.
    verify_sha256(vocabulary, done["vocabulary_sha256"], "restore the vocabulary that the corpus was packed with")
    if kept is None:
        from symbert.model.configuration import Configuration
        from symbert.model.loading import model_of, write_weights

        model = model_of(Configuration(**config))
        begin(model, run)
        write_weights(model, weights)
        begun = {"settings": {"begun_from": run.begun_from}} if run.begun_from else {}
        pretraining = {**run.identity, "parameters": done["parameters"], **begun}  # that hold before the first step
    else:
        copy_file(kept, weights)
        learned = {name: fact for name, fact in done.items() if not name.startswith("validation_")}
        pretraining = learned | _evaluated(folder, step)
        if run.corpus_source:
            pretraining["corpus_source"] = run.corpus_source
    length = rows.get("sequence_length", config["max_position_embeddings"])
    write_text(output / CHECKSUM, sha256_of(weights) + "\n")
    config["pretraining"] = {**pretraining, "step": step, "sequence_length": length}
    write_json(output / "config.json", config)
    copy_file(vocabulary, output / "vocab.txt")
    write_text(output / "tokenizer.json", encoder(vocabulary).to_str())
    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": length}
    write_json(output / TOKENIZER_CONFIG, tokenizer)
    write_text(output / "README.md", model_card(config))


def _evaluated(folder: Path, step: int) -> dict[str, float]:
    """The measures of a run's evaluation at a step; none where there was none."""
    lines = read_json_lines(folder / METRICS, OF_RUN)
    found = next((line for line in lines if line.get("split") == "validation" and line.get("step") == step), {})
    return {f"validation_{name}": value for name, value in found.items() if name not in ("split", "step")}
