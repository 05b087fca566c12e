"""The start of Snakemake in some lines: the experiment, how it differs from the last one of its name, what is trained,
what is there already, and the disk."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symbert.configuration import source_of
from symbert.console import data_size
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import outputs_of, room_for
from symbert.experiment.project import one_line
from symbert.files import read_json_or_empty
from symbert.operators import unfollowed_code

LISTED = 20  # models, of which each is named


def begin(experiment: Experiment) -> None:
    """Say on stderr what a start of Snakemake will do, and write experiment.json and settings; a failure is one line
    and ends Snakemake."""
    with one_line():
        print("\n".join(announcement_of(experiment)), file=sys.stderr)
        experiment.write()


def announcement_of(experiment: Experiment) -> Iterator[str]:
    """The lines that are said before anything runs."""
    config, outputs = experiment.config, outputs_of(experiment)
    sources = f"corpus {source_of(config, 'corpus')}, GLUE {source_of(config, 'glue')}"
    yield f"symbert: {experiment.name} (scale {Path(config['scale']).stem}, {sources}, recipe {config['recipe']})"
    before = read_json_or_empty(Path(experiment.folder, "experiment.json")).get("configuration", config)
    yield from (f"  changed  {line}" for line in differences(before, config))
    trained: dict[str, list[str]] = {}
    for run in experiment.pretrainings():
        if not Path(experiment.run_folder(run), "done.json").is_file():
            trained.setdefault(str(run).rpartition(" ")[0], []).append(str(run.pretrain_seed))
    models = (f"{model} {', '.join(seeds)}" for model, seeds in trained.items())
    many = f"{sum(map(len, trained.values()))} runs of {len(trained)} models"
    yield f"  trains   {many if len(trained) > LISTED else '; '.join(models) or 'nothing'}"
    there = sum(not output.left for output in outputs)
    yield f"  there    {there:,} of {len(outputs):,} files"
    for mount, (needed, free) in room_for(outputs).items():
        warning = "  warning: too small" if needed > free else ""
        yield f"  disk     {data_size(needed)} to come at most, {data_size(free)} free on {mount}{warning}"
    yield from (f"  warning  {line}" for line in unfollowed_code())


def differences(before: Any, after: Any, key: str = "") -> Iterator[str]:
    """The keys whose values differ, as `pretrain.steps: 1000 → 2000`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from differences(before.get(name), after.get(name), f"{key}.{name}" if key else name)
    elif before != after:
        yield f"{key}: {json.dumps(before)} → {json.dumps(after)}"
