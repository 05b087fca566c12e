"""One experiment with data for every exhibit: its csv and Markdown are those in golden/, cell by cell; it is the same
again, and files that are damaged are named.

After a wanted change `GOLDEN=write pytest tests/report/test_golden.py` writes them, to be read as a diff.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from msgspec import to_builtins
from scipy.stats import ttest_1samp

from csv_rows import read
from damage import assert_named
from legibility import assert_legible
from report.conftest import (
    COLUMNS,
    ESCAPE_LOSS,
    TASKS,
    domain_set,
    done_of,
    noise_set,
    packed,
    record,
    robustness_record,
    tell_digest,
    write,
    write_lines,
)
from report.minimal_pairs import minimal_pairs
from symbert.cli import main
from symbert.configuration import merge
from symbert.errors import DataError
from symbert.glue.tasks import SUITES
from symbert.report import published
from symbert.report.collect import collect, losses_of, read_record
from symbert.report.exhibits import EXHIBITS
from symbert.report.figures import (
    architectures_figure,
    blimp_figure,
    checkpoints_figure,
    loss_figures,
    robustness_figure,
)
from symbert.report.formats import Table, Words, write_table
from symbert.report.names import OF_PROJECT
from symbert.report.report import report
from symbert.report.setting import note_of
from symbert.report.style import house_style, looks_of, write_figure

GOLDEN = Path(__file__).parent / "golden"
SKIPPED = {"tables/provenance.csv", "tables/provenance.md"}  # of this machine
SKIPPED |= {"data/pairs.csv", "data/robustness.csv"}  # long
ATTENTION, SEEDS = ("original", "symmetric", "pairwise"), (1, 2, 3)
MODELS = [*itertools.product(["tiny"], ATTENTION, SEEDS)]
ESCAPES = {"original": (800, 900, 850), "symmetric": (600, None, 700), "pairwise": (400, 450, 500)}  # by seed
SUPERGLUE = list(SUITES["superglue"].tasks)
SUITE_HASHES = {"superglue": "5009", "squad2": "50ad", "blimp": "b11a"}
ARCHITECTURE_RUNS = {  # of other architectures: what the last evaluation measured
    ("decoder", "original", 1): {"perplexity": 20.0},
    ("decoder", "original", 2): {"perplexity": 24.0},
    ("decoder", "symmetric", 1): {"perplexity": 33.0},
}


def score_of(attention, pretrain_seed, step, column, seed):
    """A score that tells its cell: no two columns, operators or seeds are alike."""
    score = 0.45 + 0.04 * ATTENTION.index(attention) + 0.007 * (len(column) % 5)
    return score + 0.003 * seed**2 + 0.01 * (pretrain_seed == 2) + 0.1 * step / 1800 + 0.001 * (seed * len(column) % 7)


def scored(model, step, task, seed, **changes):
    columns = COLUMNS.get(task, [task])
    facts = {"metrics": {column: score_of(*model[1:], step, column, seed) for column in columns}}
    facts |= {"majority": dict.fromkeys(columns, 0.4), "data_sha256": f"{task} rows", "partial": task == "rte"}
    facts |= {"stand_in": task == "mrpc", "pretrain_seed": model[2]}
    facts["constant_prediction"] = (task, model, seed) == ("cola", ("tiny", "symmetric", 2), 3)
    return record(*model[:2], step, "rte", seed) | {"task": task} | facts | changes


def of_suite(task, seed, attention):
    details = {name: 0.3 + 0.1 * at + 0.01 * seed for at, name in enumerate(("exact", "f1", "has_answer_exact"))}
    details |= {"has_answer_f1": 0.2 + 0.02 * seed, "no_answer_f1": 0.7}
    suite = "squad2" if task == "squad2" else "superglue"
    facts = {"details": {task: details}} if task == "squad2" else {}
    return scored(("tiny", attention, 1), 1800, task, seed, settings_hash=SUITE_HASHES[suite], **facts)


def architecture_run(folder, architecture, attention, seed, measures):
    points = [{"split": "validation", "step": step, "loss": 3.0} | {name: share * value
              for name, value in measures.items()} for step, share in ((600, 0.5), (1800, 1))]  # fmt: skip
    write_lines(folder / "metrics.jsonl", [{"split": "initial", "step": 0, "logit_std": [1.0]}, *points])
    run = {"size": "tiny", "attention": attention, "pretrain_seed": seed, "architecture": architecture}
    done = {**done_of(run, 1800, 3.0, folder / "metrics.jsonl"), "parameters": 150}
    write(folder / "done.json", done | {f"validation_{name}": value for name, value in measures.items()})
    return folder


def heads_file(file):
    head = "checkpoint,size,attention,pretrain_seed,step,layer,head,symmetry,directionality,logit_std"
    cells = itertools.product(ATTENTION, SEEDS[:2], (0, 900, 1800), (1, 2), (1, 2))
    lines = [
        f"c,tiny,{name},{seed},{step},{layer},{head},{0.1 * head + step / 9000},0.25,{1 + 0.2 * seed},{layer},0.125"
        for name, seed, step, layer, head in cells
    ]
    file.write_text("\n".join([f"{head},attention_entropy,own_share", *lines, ""]))
    return file


@pytest.fixture
def folder(
    tmp_path, monkeypatch, configuration, report_settings, write_scores, write_run, write_timing,
    write_speeds, corpus_files, counted, falling
):  # fmt: skip
    """The experiment: three pre-training and fine-tuning seeds, checkpoints, suites, architectures and the rest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setattr("symbert.report.collect.counted", lambda *_: counted(("tiny", "small", "base"), ATTENTION))
    records = [scored(*cell) for cell in itertools.product(MODELS, (0, 1800), TASKS, SEEDS)]
    final = [entry for entry in records if entry["step"] == 1800]
    curve = itertools.product(ATTENTION, (600, 1200, 1800), TASKS)
    robust = []
    for entry in final:
        sets = [noise_set(column, share, 0.4 + (score - 0.4) * (1 - share), majority=0.4)
                for column, score in entry["metrics"].items() for share in (0.1, 0.4)]  # fmt: skip
        sets += [domain_set(name, 0.4 + 0.01 * entry["finetune_seed"]) for name in ("hans", "ax")
                 if entry["task"] == "mnli"]  # fmt: skip
        robust.append(robustness_record(entry, *sets))
    runs = [write_run(size, name, falling(ESCAPES[name][seed - 1]), seed=seed) for size, name, seed in MODELS]
    others = [
        architecture_run(tmp_path / f"runs/{architecture}/tiny-{name}/seed-{seed}", architecture, name, seed, measures)
        for (architecture, name, seed), measures in ARCHITECTURE_RUNS.items()
    ]
    for run in (*runs, *others):
        write_timing(run)
    write_timing(runs[0], device="A card", sessions=2, commits=["0123abcd", "4567cdef"])
    write(tmp_path / "manifest.json", packed(unigram_entropy=ESCAPE_LOSS / 0.8))
    suites = itertools.product([*SUPERGLUE, "squad2"], SEEDS, ATTENTION[::2])
    beside = {"squad2": [], "superglue": []}
    for cell in suites:
        beside["squad2" if cell[0] == "squad2" else "superglue"].append(of_suite(*cell))
    judged = [minimal_pairs(name, seed, step, right=3 + at + seed + step // 900)
              for (at, name), seed, step in itertools.product(enumerate(ATTENTION), (1, 2), (900, 1800))]  # fmt: skip
    inputs = {
        "scores": {"glue": write_scores(records)}
        | {suite: write_scores(records, suite) for suite, records in beside.items()},
        "curve": {"glue": write_scores([scored(("tiny", name, 1), *at, 1) for name, *at in curve], "curve")},
        "robustness": write_scores(robust, "robustness"),
        **{"runs": runs, "runs_of_others": others, "speeds": [write_speeds(original=[0.02], pairwise=[0.03])]},
        **{"parts": corpus_files(1, 2, 10), "manifest": tmp_path / "manifest.json"},
        "blimp": [write(tmp_path / f"pairs/{at}.json", entry) for at, entry in enumerate(judged)],
        "anatomy": [heads_file(tmp_path / "anatomy.csv")],
    }
    inputs = json.loads(json.dumps(inputs, default=lambda path: str(path.relative_to(tmp_path))))
    settings = {"glue.source": "mirror", "pretrain.learning_rate": 1e-3}
    sweep = {"suites": list(SUITES), "tasks": [*TASKS, *SUPERGLUE, "squad2"], "attention": list(ATTENTION)}
    sweep |= {"pretrain_seeds": [1], "finetuned_pretrain_seeds": [], "finetune_seeds": list(SEEDS)}
    sweep |= {"sizes": ["tiny"], "curve": {"finetune_seeds": [1], "sizes": [], "steps": {}}}  # no more is asked
    told = {"experiment": "golden", "key": "0123abcd", "inputs": inputs, "settings": {}}
    told["configuration"] = {**configuration, "sweep": configuration["sweep"] | sweep, "tasks": {}}
    told["report"] = to_builtins(report_settings(settings, experiment="golden", title="Experiment golden"))
    return write(tmp_path / "results/golden/experiment.json", told).parent


def cells_of(file):
    """The cells of a csv file by row and column, numbers to nine decimals: processors sum in other orders."""

    def value(cell):
        try:
            return round(float(cell), 9) + 0.0
        except ValueError:
            return cell

    return {(number, column): value(cell) for number, row in enumerate(read(file)) for column, cell in row.items()}


def test_every_table_and_text_is_the_golden_one_and_stands_in_every_format_and_on_the_page(folder):
    assert main(["report", str(folder)]) == 0
    page = (folder / "report/report.html").read_text(encoding="utf-8")
    for kind, suffixes in (("tables", {"csv", "md", "tex"}), ("figures", {"png", "pdf"})):
        written = list(folder.glob(f"report/{kind}/*"))
        for stem in {file.stem for file in written}:
            assert {file.suffix[1:] for file in written if file.stem == stem} == suffixes
            assert f'id="{kind[:-1]}-{stem}"' in page
    assert (folder / "report/experiment-0123abcd.json").read_bytes() == (folder / "experiment.json").read_bytes()
    files = [file for pattern in ("tables/*.csv", "tables/*.md", "texts/*.txt", "data/*.csv")
             for file in (folder / "report").glob(pattern)]  # fmt: skip
    made = {str(file.relative_to(folder / "report")): file for file in files}
    made = {name: file for name, file in made.items() if name not in SKIPPED}
    if os.environ.get("GOLDEN") == "write":
        shutil.rmtree(GOLDEN, ignore_errors=True)
        for name, file in made.items():
            write(GOLDEN / name, 0).write_bytes(file.read_bytes())
    assert {str(file.relative_to(GOLDEN)) for file in GOLDEN.rglob("*.*")} == made.keys()
    for name, file in made.items():
        if file.suffix == ".csv":
            assert cells_of(file) == cells_of(GOLDEN / name), name
        else:
            assert file.read_text(encoding="utf-8") == (GOLDEN / name).read_text(encoding="utf-8"), name


def test_a_report_that_is_made_again_has_the_same_bytes_and_nothing_of_an_earlier_configuration(folder):
    def files():
        return {path: path.read_bytes() for path in (folder / "report").rglob("*.*")}

    report(folder)
    before = files()
    for surplus in ("experiment-ffffffff.json", "tables/mine.csv", "figures/mine.png"):
        (folder / "report" / surplus).write_text("{}")
    report(Path("golden"))
    assert files() == before


@pytest.mark.parametrize(
    ("stricter", "named"),
    [
        ({"corpus": {"filter": {"max_bad_fraction": 0.001}}}, "corpus.filter.max_bad_fraction"),
        ({"glue": {"allow_partial": False}}, "'glue.allow_partial' is false"),
    ],
)
def test_results_that_an_experiment_with_laxer_settings_made_are_refused(folder, stricter, named):
    record = read_record(folder)[1]
    with pytest.raises(DataError, match=re.escape(named)):
        collect({**record, "configuration": merge(record["configuration"], stricter)})


def lines_of(panel):
    """The curves of a panel by operator; of several of a colour, the first."""
    by_color = {}
    for line in panel.lines:
        by_color.setdefault(line.get_color(), np.asarray(line.get_xydata(), float))
    return {
        name: by_color[look.color] for name, look in looks_of(ATTENTION, OF_PROJECT).items() if look.color in by_color
    }


def panels_of(figure):
    return [panel for panel in figure.axes if panel.axison]


def test_figures_draw_what_the_collection_says(folder):
    data = collect(read_record(folder)[1])
    with house_style():
        losses, escapes = panels_of(loss_figures(data)["tiny"])
        for name, curve in lines_of(losses).items():
            seeds = losses_of(data.runs)["tiny", name]
            assert curve.tolist() == [[step, seeds[step].mean()] for step in seeds]
            assert lines_of(escapes)[name][:, 0].tolist() == [50 + step for step in ESCAPES[name] if step]
        bands = [artist for artist in losses.collections if isinstance(artist, PolyCollection)]
        for band, seeds in zip(bands, losses_of(data.runs).values(), strict=True):
            low, high = ttest_1samp(seeds[900], 0).confidence_interval(0.95)
            ends = [y for x, y in band.get_paths()[0].vertices if x == 900]
            assert (min(ends), max(ends)) == pytest.approx((low, high))
        (panel,) = panels_of(checkpoints_figure(data))
        for name, curve in lines_of(panel).items():
            points = [(step, np.mean([100 * score_of(name, 1, step, column, 1) for column in published.COLUMNS]))
                      for step in (600, 1200, 1800)]  # fmt: skip
            np.testing.assert_allclose(curve, points)
        (marked,) = [line for line in panel.lines if line.get_xdata()[0] == pytest.approx(1207.5)]
        assert marked.get_color() == looks_of(ATTENTION, OF_PROJECT)["pairwise"].color, "where it is at 95 %"
        (decoder,) = panels_of(architectures_figure(data))
        assert lines_of(decoder)["original"].tolist() == [[600, 11], [1800, 22]], "the mean of two seeds"
        (panel,) = panels_of(blimp_figure(data))
        ends = [(65 * (percent + 5) + 200) / 67 for percent in (50, 60)]  # of two seeds, 5 and 6, and 6 and 7 of 10
        np.testing.assert_allclose(lines_of(panel)["original"], [[900, ends[0]], [1800, ends[1]]])
        noise, *_ = panels_of(robustness_figure(data))
        rows = {row["model"]: row for row in read(GOLDEN / "tables/robustness.csv")}
        for name, curve in lines_of(noise).items():
            expected = [
                float(rows[f"tiny-{name}"][f"{column} (stand-in)"]) for column in ("clean", "mixed_10", "mixed_40")
            ]
            np.testing.assert_allclose(curve[:, 1], expected)


PAPER = r"""\documentclass[twocolumn]{article}
\usepackage[letterpaper,textwidth=7in,textheight=9in]{geometry}
\usepackage{booktabs,array,graphicx,adjustbox}
\begin{document}
%s
\end{document}
"""


def test_latex_sets_every_exhibit_and_no_text_of_a_figure_runs_into_another(folder, tmp_path):
    """Nothing is wider or higher than its page."""
    data, stems, figures = collect(read_record(folder)[1]), [], 0
    with house_style():
        for exhibit in (exhibit for exhibits in EXHIBITS.values() for exhibit in exhibits):
            made = exhibit.function(data)
            for part in made.values() if isinstance(made, dict) else [made]:
                if isinstance(part, Figure):
                    figures += 1
                    write_figure(part, note_of(data), [])
                    assert_legible(part)
                if isinstance(part, Table):
                    stems.append(tmp_path / exhibit.name)
                    words = Words(exhibit.name, exhibit.caption, note_of(data))
                    write_table(part, words, [stems[-1].with_suffix(".tex")])
    assert figures >= 6 and len(stems) > 15
    if not shutil.which("pdflatex"):
        pytest.skip("tables and figures are made and legible; pdflatex, which sets the tables, is not installed")
    floats = "\n".join(rf"\input{{{stem.name}}}\clearpage" for stem in stems)
    (tmp_path / "paper.tex").write_text(PAPER % floats)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=240)
    output = outcome.stdout.decode(errors="replace")
    assert outcome.returncode == 0, output[-3000:]
    assert "Overfull" not in output and "too large" not in output, output


DAMAGED = ("experiment.json", "done.json", "metrics.jsonl", "timing.json", "manifest.json")
DAMAGED += ("en_meta_part_1.json", "speeds-tiny.json", "scores/*-rte.json", "robustness/*-rte.json")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_something_else_or_missing_is_named(folder, tmp_path, capsys, name):
    file = next(tmp_path.rglob(name))
    undated = re.sub(r'"started": *"[^"]*"', '"started": "soon"', file.read_text())
    assert_named(["report", folder], file, capsys, ("[]", "{}", "{", *([undated] if "soon" in undated else [])))
    file.unlink()
    assert main(["report", str(folder)]) == 65 and file.name in capsys.readouterr().err.splitlines()[-1]
    assert not (folder / "report/report.html").exists()


def test_a_record_of_another_version_is_told_to_be_made_again_and_not_to_be_edited(folder, tmp_path, capsys):
    record = json.loads((folder / "experiment.json").read_text())
    configuration = record.pop("configuration")
    for damaged in (record, {**record, "configuration": {**configuration, "recipe": "faithful"}}):
        write(folder / "experiment.json", damaged)
        assert main(["report", str(folder)]) == 65
        assert "experiment.json: " in (line := capsys.readouterr().err) and "; run snakemake again" in line


def test_a_session_that_ended_before_its_first_measurement_has_no_hours(folder, tmp_path):
    """The report ended with a bug of ours."""
    for timing in tmp_path.rglob("timing.json"):
        write(timing, {**json.loads(timing.read_text()), "until": None})
    assert {run["wall_hours"] for run in collect(read_record(folder)[1]).machines} == {None}


def test_a_damaged_line_of_a_log_is_told_with_file_and_line(folder, tmp_path, capsys):
    log = next(tmp_path.rglob("encoder/*/*/metrics.jsonl"))
    lines = log.read_bytes().splitlines()
    for line, told in (
        (b'{"split": "validation", "step": 60, "loss": 4.\xff}', "not JSON (JSON is malformed"),
        (b'{"split": "validation", "step": 60, "loss"', "not JSON (Input data was truncated"),
        (b'{"split": "validation", "step": 60}', "object missing required field 'loss'"),
    ):
        log.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
        tell_digest(log.parent)
        assert main(["report", str(folder)]) == 65
        assert f"{log.relative_to(tmp_path)}:3: {told}" in capsys.readouterr().err
