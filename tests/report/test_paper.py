"""Tables and figures in a paper: every one is written, no text runs into another, and LaTeX compiles."""

import itertools
import json
import math
import shutil
import subprocess

import pytest

from legibility import assert_legible
from report.written import collected
from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import Table
from symbert.report.report import write_exhibit
from symbert.report.style import Plot, house_style

SIZES, SEEDS, STEPS = ("small", "base"), (1, 2, 3), (600, 1200, 1800)
ATTENTION = ("original", "symmetric", "pairwise", "shared", "original-gain", "pairwise-scaled")
MODELS = list(itertools.product(SIZES, ATTENTION))
TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
PAPER = r"""\documentclass[twocolumn]{article}
\usepackage[letterpaper,textwidth=7in,textheight=9in]{geometry}
\usepackage{booktabs,array,graphicx,adjustbox}
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
    """Data by name: of two sizes, six operators and three pre-training seeds."""
    runs = [write_run(*model, _losses(300 + 40 * seed + 90 * at), seed=seed) for at, model in enumerate(MODELS)
            for seed in SEEDS]  # fmt: skip
    scores, robustness = robustness_records([(*model, 0.6 + 0.01 * at) for at, model in enumerate(MODELS)])
    curve = [record(*model, step, task, 1) for model, step, task in itertools.product(MODELS, STEPS, TASKS)]
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
    for run in runs:
        write_timing(run)
    return {
        "settings": report_settings(tasks=TASKS),
        "parameters": counted(SIZES, ATTENTION),
        "scores": write_scores(scores),
        "robustness": write_scores(robustness, "robustness"),
        "curve": write_scores(curve, "curve"),
        **{"finetune_seeds": [1, 2], "curve_seeds": [1], "pretrain_seeds": list(SEEDS)},
        "runs": runs,
        **{"parts": corpus_files(*range(1, 5)), "manifest": tmp_path / "manifest.json"},
        "anatomy": tmp_path / "anatomy.csv",
    }


@pytest.fixture
def made(inputs):
    """The exhibits that there are data for, by the stem of their files; of one per size, that of base."""
    data, made = collected(**inputs), {}
    with house_style():
        for exhibit in (exhibit for exhibits in EXHIBITS.values() for exhibit in exhibits):
            part = exhibit.function(data)
            part = part["base"] if isinstance(part, dict) else part
            if isinstance(part, Table | Plot):
                made[f"{type(part).__name__}-{exhibit.name}"] = exhibit, part
    return made


def test_no_text_of_a_figure_runs_into_another(made):
    figures = [part for _, part in made.values() if isinstance(part, Plot)]
    assert len(figures) >= 5
    for plot in figures:
        with house_style():
            assert_legible(plot.figure)


def test_every_table_and_figure_is_written_for_a_paper_and_latex_sets_them(made, tmp_path):
    stems = []
    for exhibit, part in made.values():
        stems.append(write_exhibit(exhibit, part, tmp_path)[0].with_suffix(""))
    assert len(stems) > 15
    if shutil.which("pdflatex"):
        _compile(stems, tmp_path)


def _compile(stems, folder):
    """Let LaTeX set them all; nothing is wider or higher than its page."""
    for stem in stems:
        shutil.copy(stem.with_suffix(".tex"), folder / f"{stem.parent.name}-{stem.name}.tex")
        if stem.parent.name == "figures":
            shutil.copy(stem.with_suffix(".pdf"), folder)
    floats = "\n".join(rf"\input{{{stem.parent.name}-{stem.name}}}\clearpage" for stem in stems)
    (folder / "paper.tex").write_text(PAPER % floats)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=240)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-3000:]
    assert "Overfull" not in said and "too large" not in said, said
