"""Tables and figures in a paper: LaTeX compiles, nothing is wider or higher than its page, captions are short."""

import itertools
import json
import math
import re
import shutil
import subprocess

import pytest

from symbert.report.data import write_exhibit
from symbert.report.exhibits import EXHIBITS, options_to_read
from symbert.report.style import PAGE_WIDTH, WIDTH

SIZES, SEEDS, STEPS = ("small", "base"), (1, 2, 3), (600, 1200, 1800)
ATTENTION = ("original", "symmetric", "pairwise", "shared", "original-gain", "pairwise-scaled")
MODELS = list(itertools.product(SIZES, ATTENTION))
TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
HIGHEST = 9.0  # inches: of the text on a page of letter paper
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
    tmp_path, write_run, write_timing, robustness_records, record, write_scores, corpus_files, parameters_file,
    settings_file
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
        "settings": settings_file(tasks=TASKS),
        "parameters": parameters_file(SIZES, ATTENTION),
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
def made(inputs, tmp_path):
    """The exhibits that these files suffice for, written as csv or pdf, LaTeX and text; the folder, and their stems."""
    stems = {}
    for each in EXHIBITS.values():
        needed = [option for name in each.reads for option in options_to_read(name)]
        if each.kind == "text" or each.suite != "glue" or not inputs.keys() >= set(needed):
            continue
        known = [option for name in (*each.reads, *each.may_read) for option in options_to_read(name)]
        given = {option: inputs[option] for option in known if option in inputs}
        if each.per_size:
            given |= {
                option: [file for file in given[option] if "base-" in str(file)] for option in ("done", "metrics")
            }
            given["size"] = "base"
        stem = tmp_path / each.stem.format(size="base")
        suffixes = (".tex", ".md") if each.kind == "table" else (".tex", ".txt", ".pdf")
        write_exhibit(each.id, [stem.with_suffix(suffix) for suffix in suffixes], **given)
        stems[each.id] = stem
    return stems


def test_every_table_and_figure_fits_a_paper(made, tmp_path):
    """The sizes of figures and the lengths of captions, and the whole in LaTeX where it is installed."""
    assert len(made) > 15
    for exhibit, stem in made.items():
        text = stem.with_suffix(".md" if exhibit.startswith("table") else ".txt").read_text(encoding="utf-8")
        caption = text.partition("\n")[0]
        assert len(caption.split()) <= 60, f"{exhibit}: {caption}"
        if exhibit.startswith("figure"):
            box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", stem.with_suffix(".pdf").read_bytes())
            width, height = (float(points) / 72 for points in box.groups())
            assert width == pytest.approx(WIDTH) or width == pytest.approx(PAGE_WIDTH), exhibit
            assert height <= HIGHEST, exhibit
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex on the path: sizes and captions were checked, LaTeX was not")
    for stem in made.values():
        shutil.copy(stem.with_suffix(".tex"), tmp_path / f"{stem.parent.name}-{stem.name}.tex")
        if stem.parent.name == "figures":
            shutil.copy(stem.with_suffix(".pdf"), tmp_path)
    floats = "\n".join(rf"\input{{{stem.parent.name}-{stem.name}}}\clearpage" for stem in made.values())
    (tmp_path / "paper.tex").write_text(PAPER % floats)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=240)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-3000:]
    assert "Overfull" not in said and "too large" not in said, said
