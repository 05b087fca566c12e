"""Tables and figures in a paper: every one is written, no text runs into another, and LaTeX compiles."""

import itertools
import json
import math
import shutil
import subprocess

import pytest

from legibility import assert_legible
from report.written import write_exhibit
from symbert.report.data import Data
from symbert.report.exhibits import EXHIBITS, options_to_read
from symbert.report.style import house_style

SIZES, SEEDS, STEPS = ("small", "base"), (1, 2, 3), (600, 1200, 1800)
ATTENTION = ("original", "symmetric", "pairwise", "shared", "original-gain", "pairwise-scaled")
MODELS = list(itertools.product(SIZES, ATTENTION))
TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
PAPER = r"""\documentclass[twocolumn]{article}
\usepackage[letterpaper,textwidth=7in,textheight=9in]{geometry}
\usepackage{booktabs,array,graphicx,rotating}
\begin{document}
%s
\end{document}
"""


def _losses(leaves):
    """The points of a run that leaves a plateau."""
    return [(step, 6 + math.exp(-step / 60) - max(0.0, math.log(step / leaves))) for step in range(50, 1801, 50)]


@pytest.fixture
def inputs(
    tmp_path, write_run, write_timing, robustness_records, record, write_scores, corpus_files, counted,
    report_settings
):  # fmt: skip
    """Files by option: of two sizes, six operators and three pre-training seeds."""
    runs = [write_run(*model, _losses(300 + 40 * seed + 90 * at), seed=seed) for at, model in enumerate(MODELS)
            for seed in SEEDS]  # fmt: skip
    scores, robustness = robustness_records([(*model, 0.6 + 0.01 * at) for at, model in enumerate(MODELS)])
    curve = [record(*model, step, task, 1) for model, step, task in itertools.product(MODELS, STEPS, TASKS)]
    counts, records = corpus_files(*range(1, 5))
    packed = {"documents": {"train": 900, "validation": 50}, "tokens": 640_060, "sequence_length": 64}
    packed |= {"rows": {"train": 9900, "validation": 100}, "remainder_tokens": 10}
    (tmp_path / "manifest.json").write_text(json.dumps(packed | {"surplus_tokens": {"train": 30, "validation": 20}}))
    rows = itertools.product(MODELS, SEEDS, (0, *STEPS), (1, 2), (1, 2))
    heads = [
        f"c,{size},{name},{seed},{step},{layer},{head},0.5,0.1,1.5,2,0.1\n"
        for (size, name), seed, step, layer, head in rows
    ]
    head = "checkpoint,size,attention,pretrain_seed,step,layer,head,symmetry,directionality,logit_std"
    (tmp_path / "anatomy.csv").write_text(f"{head},attention_entropy,own_share\n{''.join(heads)}")
    done, timing = [done for done, _ in runs], [write_timing(done) for done, _ in runs]
    return {
        "settings": report_settings(tasks=TASKS),
        "parameters": counted(SIZES, ATTENTION),
        "scores": write_scores(scores),
        "robustness": write_scores(robustness, "robustness"),
        "curve": write_scores(curve, "curve"),
        **{"finetune_seeds": [1, 2], "curve_seeds": [1], "pretrain_seeds": list(SEEDS)},
        "metrics": [metrics for _, metrics in runs],
        **{"done": done, "provenance": [*done, *timing]},
        **{"counts": counts, "records": records, "manifest": tmp_path / "manifest.json"},
        "anatomy": tmp_path / "anatomy.csv",
    }


@pytest.fixture
def given(inputs):
    """What each exhibit that these files suffice for is made from."""
    found = {}
    for each in EXHIBITS.values():
        needed = [option for name in each.reads for option in options_to_read(name)]
        if each.kind == "text" or each.suite != "glue" or not inputs.keys() >= set(needed):
            continue
        known = [option for name in (*each.reads, *each.may_read) for option in options_to_read(name)]
        found[each.id] = {option: inputs[option] for option in known if option in inputs}
        if each.per_size:
            for option in ("done", "metrics"):
                found[each.id][option] = [file for file in inputs[option] if "base-" in str(file)]
            found[each.id]["size"] = "base"
    return found


def test_no_text_of_a_figure_runs_into_another(given):
    figures = [name for name in given if name.startswith("figure")]
    assert len(figures) >= 5
    for name in figures:
        with house_style():
            assert_legible(EXHIBITS[name].load()(Data(**given[name])).figure)


def test_every_table_and_figure_is_written_for_a_paper_and_latex_sets_them(given, tmp_path):
    stems = {}
    for name, files in given.items():
        stems[name] = tmp_path / EXHIBITS[name].stem.format(size="base")
        suffixes = (".tex", ".md") if name.startswith("table") else (".tex", ".txt", ".pdf")
        write_exhibit(name, [stems[name].with_suffix(suffix) for suffix in suffixes], **files)
    assert len(stems) > 15
    if shutil.which("pdflatex"):
        _compile(stems, tmp_path)


def _compile(stems, folder):
    """Let LaTeX set them all; nothing is wider or higher than its page."""
    for stem in stems.values():
        shutil.copy(stem.with_suffix(".tex"), folder / f"{stem.parent.name}-{stem.name}.tex")
        if stem.parent.name == "figures":
            shutil.copy(stem.with_suffix(".pdf"), folder)
    floats = "\n".join(rf"\input{{{stem.parent.name}-{stem.name}}}\clearpage" for stem in stems.values())
    (folder / "paper.tex").write_text(PAPER % floats)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=240)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-3000:]
    assert "Overfull" not in said and "too large" not in said, said
