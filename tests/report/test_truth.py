"""The sentences at the page's head, of experiments that lack something: each number, name and reason in them is counted
here again, from the rows."""

import itertools
import math
import re

import pandas as pd
import pytest

from report.written import collected
from symbert.report.collect import SCORE_COLUMNS, runs_of
from symbert.report.setting import note_of, sentences_of
from symbert.report.summary import summary

NINE = ("mrpc", "cola", "mnli_matched", "mnli_mismatched", "qqp", "rte", "stsb", "qnli", "sst2")
TASKS = {"mnli_matched": "mnli", "mnli_mismatched": "mnli"}
STEPS = range(100, 1001, 100)
FEWEST_FOR_SCORES, FEWEST_FOR_EXITS = 3, 5


def scored(model, seeds=5, columns=("rte", "sst2"), pretrained=(1,), step=1800):
    """Scores of a model ('tiny-original', or '-roberta' without a size) with fine-tuning seeds of each pre-training
    seed."""
    size, _, attention = model.partition("-")
    seeds = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    facts = dict.fromkeys(SCORE_COLUMNS) | {"size": size, "attention": attention, "step": step, "majority": 0.5}
    facts |= {"partial": False, "stand_in": False, "constant_prediction": False, "remark": ""}
    return [
        facts
        | {"pretrain_seed": run, "task": TASKS.get(column, column), "finetune_seed": seed, "column": column}
        | {"score": 0.5 + 0.01 * len(attention) + seed / 1000}
        for run, seed, column in itertools.product(pretrained, seeds, columns)
    ]


def trained(model, seeds=(1,), escape=500):
    """Runs of a model that escape the plateau after a step."""
    size, _, attention = model.partition("-")
    losses = [5 + math.exp(-step / 60) - 1.5 * max(0.0, math.log(step / escape)) for step in STEPS]
    run = {"size": size, "attention": attention, "step": list(STEPS), "logit_std": math.nan}
    return [run | {"pretrain_seed": seed, "loss": losses, "attention_entropy": math.nan} for seed in seeds]


BOTH = [*scored("tiny-original"), *scored("tiny-pairwise")]
ARCHITECTURE = {
    "architecture": "decoder",
    "size": "tiny",
    "attention": "original",
    "steps": 500,
    "validation_loss": 3.0,
}
PAIRS = {
    "architecture": "encoder",
    "size": "tiny",
    "attention": "original",
    "pretrain_seed": 1,
    "step": 1800,
    "partial": False,
}
OTHERS = ("tiny-symmetric", "tiny-pairwise")
CASES = {
    "nothing": {},
    "both": {"scores": BOTH},
    "one operator": {"scores": scored("tiny-original")},
    "one operator, not original": {"scores": scored("tiny-pairwise"), "runs": trained("tiny-pairwise")},
    "no original": {"scores": [row for name in OTHERS for row in scored(name)]},
    "one seed": {"scores": [*scored("tiny-original", 1), *scored("tiny-pairwise", 1)]},
    "two seeds of three operators": {"scores": [row for name in ("tiny-original", *OTHERS) for row in scored(name, 2)]},
    "other seeds": {"scores": [*scored("tiny-original", (1, 2, 3)), *scored("tiny-pairwise", (4, 5, 6))]},
    "few seeds in common": {"scores": [*scored("tiny-original", (1, 2, 3, 4)), *scored("tiny-pairwise", (3, 4, 5, 6))]},
    "one task": {"scores": [*scored("tiny-original", columns=["rte"]), *scored("tiny-pairwise", columns=["rte"])]},
    "wnli alone": {"scores": [*scored("tiny-original", 2, ["wnli"]), *scored("tiny-pairwise", 2, ["wnli"])]},
    "an own task alone": {"scores": [*scored("tiny-original", 2, ["mine"]), *scored("tiny-pairwise", 2, ["mine"])]},
    "a column is missing": {"scores": [*scored("tiny-original", 5, NINE), *scored("tiny-pairwise", 5, NINE[2:])]},
    "each lacks another column": {
        "scores": [*scored("tiny-original", 5, NINE[1:]), *scored("tiny-pairwise", 5, NINE[:-1])]
    },
    "seeds without a column": {
        "scores": [*BOTH, *scored("tiny-pairwise", (1, 2), ["cola"]), *scored("tiny-original", 5, ["cola"])]
    },
    "without pre-training alone": {"scores": [*scored("tiny-original"), *scored("tiny-original", step=0)]},
    "and without pre-training": {"scores": [*BOTH, *scored("tiny-original", 2, step=0)]},
    "pre-training seeds": {
        "scores": [row for name in ("tiny-original", *OTHERS) for row in scored(name, 2, pretrained=(1, 2))]
    },
    "one with more pre-training seeds": {
        "scores": [*scored("tiny-original", pretrained=(1, 2, 3)), *scored("tiny-pairwise")]
    },
    "two units": {
        "scores": [row for name in ("tiny-original", OTHERS[0]) for row in scored(name, pretrained=(1, 2, 3))]
        + scored(OTHERS[1])
    },
    "sizes, one without original": {"scores": [*BOTH, *scored("base-pairwise"), *scored("base-symmetric")]},
    "sizes, one without other columns": {
        "scores": [
            *scored("tiny-original", 5, NINE),
            *scored("tiny-pairwise", 5, NINE),
            *scored("base-original"),
            *scored("base-pairwise"),
        ]
    },
    "sizes, one of one operator": {"scores": [*BOTH, *scored("base-original")], "runs": trained("base-original")},
    "imported, without a size": {
        "scale": "imported",
        "steps": None,
        "scores": [*scored("-original"), *scored("-roberta")],
    },
    "imported, with and without a size": {
        "scale": "imported",
        "scores": [*scored("tiny-mine", 2, ["rte"]), *scored("-roberta", 1, ["mrpc"])],
    },
    "losses alone": {"runs": [*trained("tiny-original"), *trained("tiny-pairwise", escape=300)]},
    "losses of one operator": {"runs": trained("tiny-original", (1, 2, 3, 4, 5))},
    "losses of five seeds, two the same": {
        "runs": [*trained("tiny-original", (1, 2, 3, 4, 5)), *trained("tiny-pairwise", (4, 5, 6, 7, 8))]
    },
    "losses of five seeds and of four": {
        "runs": [*trained("tiny-original", (1, 2, 3, 4, 5)), *trained("tiny-pairwise", (1, 2, 3, 4))]
    },
    "losses of five seeds": {
        "runs": [*trained("tiny-original", (1, 2, 3, 4, 5)), *trained("tiny-pairwise", (1, 2, 3, 4, 5))]
    },
    "losses without original": {"runs": [*trained("tiny-symmetric", (1, 2, 3)), *trained("tiny-pairwise", (1, 2, 3))]},
    "contrasts that are none": {
        "runs": [*trained("tiny-original", (1, 2, 3)), *trained("tiny-pairwise", (1, 2, 3))],
        "contrasts": [],
    },
    "another architecture alone": {
        "architectures": [ARCHITECTURE | {"pretrain_seed": 1}, ARCHITECTURE | {"pretrain_seed": 2}]
    },
    "minimal pairs alone": {"blimp": [PAIRS | {"stand_in": False}], "runs": trained("tiny-original")},
}


@pytest.fixture
def head(report_settings):
    """What a page's head says of an experiment, sentence by sentence, and the note of its files."""

    def make(scores=(), runs=(), architectures=None, blimp=None, scale="demo", **facts):
        tables = {"runs": runs_of(list(runs))}
        tables |= {"scores": {"glue": pd.DataFrame(scores)}} if scores else {}
        tables |= {
            name: pd.DataFrame(rows) for name, rows in (("architectures", architectures), ("blimp", blimp)) if rows
        }
        data = collected(report_settings(scale=scale, escape_loss=4.8, **facts), **tables)
        return [*summary(data), *sentences_of(data)], note_of(data), data

    return make


def models_of(rows):
    """The names of models."""
    return {"-".join(filter(None, (row["size"], row["attention"]))) for row in rows}


def model_of(row):
    """Architecture, size and operator."""
    return row.get("architecture", "encoder"), row["size"], row["attention"]


def of_model(rows, name):
    return [row for row in rows if name in models_of([row]) and row.get("step") != 0]


def count_of(word):
    return {"no": 0, "one": 1}.get(word) if word in ("no", "one") else int(word)


def check_reason(reason, scores, runs, data):
    """AssertionError for a reason that the rows do not bear out, and for one of no known kind."""
    names, pairs = r"(\S+(?:(?:,| and) \S+)*)", data.comparisons.get("glue", [])
    if reason == "there are no scores":
        assert not scores and data.blimp is None
    elif reason == "minimal pairs are not tested":
        assert not scores and data.blimp is not None
    elif reason == "there are no losses of encoders":
        assert not runs
    elif re.fullmatch("no contrast of escapes is named", reason):
        assert data.experiment.contrasts == []
    elif found := re.fullmatch("no other operator has (scores|losses) beside (\\S+)", reason):
        rows = {"scores": scores, "losses": runs}[found[1]]
        sizes = {row["size"] for row in of_model(rows, found[2])}
        assert len(sizes) == 1 and models_of(row for row in rows if row["size"] in sizes) == {found[2]}
    elif found := re.fullmatch("(\\S*original), with which others are compared, has no scores", reason):
        size = found[1].removesuffix("original").removesuffix("-")
        assert found[1] not in models_of(scores) and size in {row["size"] for row in scores}
    elif found := re.fullmatch(f"{names} ha(?:s|ve) no (\\w+(?: and no \\w+)*)", reason):
        for model, column in itertools.product(re.split(", | and ", found[1]), found[2].split(" and no ")):
            rows = of_model(scores, model)
            assert rows and column not in {row["column"] for row in rows}
            assert column in {row["column"] for row in scores if row["size"] == rows[0]["size"]}
    elif found := re.fullmatch(
        f"{names} ha(?:s|ve) (\\w+) (?:(fine-tuning|pre-training) )?seeds?( with every column)? in common with (\\S+), "
        "and a test of scores takes (\\d)",
        reason,
    ):
        for model in re.split(", | and ", found[1]):
            both = [of_model(scores, name) for name in (model, found[5])]
            assert all(both)
            columns = {row["column"] for row in scores if row["size"] == both[0][0]["size"]} - {"wnli"} or {"wnli"}
            assert found[4] or len(columns) == 1
            whole = []
            for rows in both:
                cells = {(row["pretrain_seed"], row["finetune_seed"], row["column"]) for row in rows}
                seeds = {cell[:2] for cell in cells}
                whole.append({seed for seed in seeds if all((*seed, column) in cells for column in columns)})
            common = whole[0] & whole[1]
            assert found[3] or not common
            number = len({seed[0] for seed in common}) if found[3] == "pre-training" else len(common)
            assert count_of(found[2]) == number < int(found[6]) == FEWEST_FOR_SCORES
    elif found := re.fullmatch(
        f"{names} ha(?:s|ve) (\\d+) pre-training seeds?, and a test of escapes takes (\\d)", reason
    ):
        for model in re.split(", | and ", found[1]):
            seeds = {row["pretrain_seed"] for row in of_model(runs, model)}
            assert len(seeds) == int(found[2]) < int(found[3]) == FEWEST_FOR_EXITS
    elif found := re.fullmatch(f"{names} ha(?:s|ve) other pre-training seeds than (\\S+)", reason):
        other = {row["pretrain_seed"] for row in of_model(runs, found[2])}
        for model in re.split(", | and ", found[1]):
            assert other and {row["pretrain_seed"] for row in of_model(runs, model)} != other
    elif reason == "no difference in the GLUE score is significant":
        assert any(pair.p is not None for pair in pairs) and not any(pair.is_significant for pair in pairs)
    elif reason == "escapes from the plateau are not known":
        assert runs and data.escape_loss is None
    elif re.fullmatch("no difference of escapes from the plateau is significant", reason):
        seeds = {name: {row["pretrain_seed"] for row in of_model(runs, name)} for name in models_of(runs)}
        pairs = itertools.combinations(seeds.values(), 2)
        assert any(len(first) >= FEWEST_FOR_EXITS and first == second for first, second in pairs)
    else:
        raise AssertionError(f"a reason of no known kind: {reason}")


@pytest.mark.parametrize("case", CASES)
def test_no_sentence_states_what_was_not_counted(head, case):
    """Of five seeds without CoLA a test took three; of no original no other operator stood beside it; of one operator
    the intervals spoke of noise."""
    given = CASES[case]
    scores, runs = given.get("scores", []), given.get("runs", [])
    (begun, found, supported, compared, *rest), note, data = head(**given)
    for sentence in (begun, found, supported, compared, *rest, note):
        assert not re.search(r"nan|None|inf\b|\s-\w|--|\(\)|, ,|: ?[,;.]|BERT-[,;. ]|\bmodels: models", sentence), (
            sentence
        )
    every = [*scores, *runs, *given.get("architectures", [])]
    # The reasons, and which differences are supported.
    reasons = re.search(
        "(?:The data support no difference between operators|all else is undecided)(?:: (.*))?\\.$", supported
    )
    for reason in reasons[1].split("; ") if reasons[1] else []:
        check_reason(reason, scores, runs, data)
    assert reasons[1] or "all else" in supported
    for model in re.findall(r"(?:of|than of) ((?:tiny|base|small)-[a-z]+)", supported):
        assert model in models_of(every)
    is_one_seed = {pair.model: pair.unit == "fine-tuning seed" for pair in data.comparisons.get("glue", [])}
    for model, tail in re.findall(r"GLUE score of (?:\w+-)?(\w+) than [^(]*\(([^)]*)\)", supported):
        assert ("one pre-training seed" in tail) == is_one_seed[model]
    # What was compared.
    assert all(row["attention"] in begun for row in every)
    if every:
        named = re.match("(Compared|Measured): (.*); seeds: (\\S+)(?: to (\\S+))? of pre-training(.*)\\.", compared)
        sized = set(map(model_of, every))
        assert (named[1] == "Measured") == (len(sized) == 1)
        for architecture, size, attention in sized:
            family = {"encoder": f"BERT-{size}" if size else "without a size"}.get(
                architecture, f"{architecture} {size}"
            )
            assert re.search(rf"\b{attention}\b[^;]*(\(|; models: )[^;)]*\b{family}\b", compared)
        for part in re.findall(r"([a-z, ]+) \(([^)]*)\)", named[2]):
            together = itertools.product(part[0].strip().split(", "), part[1].split(", "))
            assert {(of, family.removeprefix("BERT-")) for of, family in together} <= {
                (attention, size or "without a size") for _, size, attention in sized
            }
        seeds = [{row["pretrain_seed"] for row in every if model_of(row) == model} for model in sized]
        assert {int(named[3]), int(named[4] or named[3])} == {min(map(len, seeds)), max(map(len, seeds))}
        assert bool(scores) == ("of fine-tuning" in named[5])
    else:
        assert re.search("neither scores nor losses", compared)
    # What the page says of seeds, columns and intervals.
    said, facts = " ".join(rest), note.partition(": ")[2]
    inferred = [pair for pair in data.comparisons.get("glue", []) if pair.interval]
    assert ("their intervals and p" in said) == any(pair.unit == "fine-tuning seed" for pair in inferred)
    assert ("Scores are of one" in said) == bool(inferred and all(pair.unit == "fine-tuning seed" for pair in inferred))
    sizes = {row["size"] or "models without a size" for row in scores}
    told = re.findall(r"(?:GLUE|mean) score of (\d) of 9 columns(?: in ([\w, ]+))?", facts)
    told = {size: int(number) for number, of in told for size in (of.split(", ") if of else sizes)}
    columns = {size: {row["column"] for row in scores if size.startswith(row["size"] or "models")} for size in sizes}
    columns = {size: of - {"wnli", "mine"} for size, of in columns.items()}
    assert told == {size: len(of) for size, of in columns.items() if 0 < len(of) < 9}
