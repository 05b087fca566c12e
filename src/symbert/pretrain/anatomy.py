"""`symbert anatomy`: the attention of checkpoints on rows of text, as a table of heads."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from symbert.corpus.shards import Pack
from symbert.corpus.texts import WriteText
from symbert.files import write_text
from symbert.pretrain.run import IDENTITY, GivenRows
from symbert.steps import Step, read_step

MEASURES = ["symmetry", "directionality", "logit_std", "attention_entropy", "own_share"]


class MeasureAnatomy(Step, frozen=True, kw_only=True):
    """The checkpoints whose heads are described, and those of the starts of their runs, on rows of text."""

    place: ClassVar[str] = "measured/anatomy"
    files: ClassVar[dict[str, str]] = {"anatomy": "anatomy.csv"}

    checkpoints: list[str]  # folders, whose names have the keys of their runs
    rows: Pack | WriteText | GivenRows

    def reads(self) -> list[str]:
        """The files that it waits for."""
        return [*(f"{folder}/model.safetensors" for folder in self.checkpoints), *self.rows.paths().values()]


def anatomy(
    checkpoints: Annotated[list[Path], "folders of checkpoints: steps of runs, exports, any BERT"],
    /,
    manifest: Annotated[Path | None, "manifest.json of a corpus whose validation rows are read"] = None,
    with_init: Annotated[bool, "add the untrained model of each run"] = False,
    output: Annotated[Path | None, "a csv file, with a row per head"] = None,
) -> None:
    """Describe the attention of checkpoints, of this project or any BERT, head by head.

    Measured are symmetry and directionality of W_Q W_Kᵀ, the width of the logits, and entropy and own share of the
    attention, on the first 16 validation rows of `manifest`, or else on 16 rows of 32 random tokens. Prints means over
    the heads of each layer of each checkpoint; `output` is a csv with a row per head. `with-init` adds the untrained
    model of each run of this project, as step 0, which follows from its seed; of one that began from a checkpoint none.
    """
    import pandas as pd

    from symbert.model.loading import load_encoder  # imports torch
    from symbert.pretrain.heads import heads_of, start_of

    rows: list[dict[str, Any]] = []
    runs: dict[Any, tuple[Path, Any]] = {}  # a checkpoint of each, but for untrained models
    begun = set()  # those whose untrained model is among the checkpoints
    for checkpoint in dict.fromkeys(checkpoints):
        model = load_encoder(checkpoint)
        identity = model.config.pretraining or {}
        rows += heads_of(checkpoint, model, {name: identity.get(name) for name in IDENTITY}, manifest)
        name = tuple(identity.get(key) for key in IDENTITY[:3])
        if identity.get("step") == 0:
            begun.add((checkpoint.parent, name))
        elif "begun_from" not in identity.get("settings", {}):
            runs.setdefault((name, identity.get("settings_hash")), (checkpoint, model.config))
    untrained: list[dict[str, Any]] = []
    for (name, _), (checkpoint, config) in runs.items() if with_init else ():
        if (checkpoint.parent, name) not in begun:
            identity = dict(zip(IDENTITY, (*name, 0), strict=True))
            untrained += heads_of(checkpoint, start_of(checkpoint, config), identity, manifest)
    heads = pd.DataFrame([*untrained, *rows])
    heads = heads.sort_values([*IDENTITY], kind="stable", ignore_index=True).astype(dict.fromkeys(MEASURES, float))
    if output is not None:
        write_text(output, heads.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
        return
    means = heads.groupby(["checkpoint", *IDENTITY, "layer"], sort=False, dropna=False)[MEASURES].mean().reset_index()
    named = [*IDENTITY, "layer"]
    if means[named].isna().any(axis=None) or means.duplicated(named).any():  # such as a run on two corpora
        named = ["checkpoint", *(["step"] if means["step"].notna().any() else []), "layer"]
    print(means[[*named, *MEASURES]].to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def measure_anatomy(output: Annotated[Path, "anatomy.csv beside its settings.json"], /) -> None:
    """Describe the attention of the checkpoints in the settings beside `output`, and of the untrained models of their
    runs."""
    step = read_step(output.parent, MeasureAnatomy)
    anatomy([Path(folder) for folder in step.checkpoints], Path(step.rows.paths()["manifest"]), True, output)
