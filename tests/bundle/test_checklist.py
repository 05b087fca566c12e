import json

from symbert.bundle.checklist import IMPORTED, checklist_text
from symbert.bundle.results import Results


def answers_of(results: Results) -> dict[str, str]:
    lines = checklist_text(results).splitlines()
    return {line.strip("*"): lines[at + 2] for at, line in enumerate(lines) if line.startswith("**")}


def change(path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_answers_have_the_numbers_of_the_files(results):
    answers = answers_of(results)
    assert answers["How many parameters has each model?"] == "`tiny-original` 156,780; `tiny-symmetric` 156,780."
    assert answers["Which machines computed?"] == "2 runs of pre-training on Abacus, AVX2, in fp32, threads: 2."
    assert answers["How long did pre-training take?"] == "2 runs in 3.00 hours, 1.50 hours each on average."
    assert answers["How long did fine-tuning take?"].startswith("1 job in 2.00 hours, 2.00 hours each on average")
    assert answers["What are the splits of the corpus?"] == (
        "3,000 rows for training and 50 held out, of 195,200 tokens."
    )
    assert answers["What are the splits of the tasks?"] == "`rte`: train 2,490, validation 277."
    assert answers["How many documents were left out, and why?"].startswith("Kept 700 of 1,200")
    assert "1 seed of pre-training and up to 2 seeds" in answers["How many runs does a number stand for?"]
    assert "tiny-symmetric-seed-1 3.2500" in answers["What was reached on held-out text?"]


def test_hyperparameters_are_counted_against_the_papers(results):
    """Of steps, batch and four others, the paper has all but the steps (200,000) and this weight decay."""
    said = answers_of(results)["How were hyperparameters chosen?"]
    assert said.startswith("4 of 6 are those of arXiv 2406.06366, the others of the scale small"), said


def test_hours_of_gpus_are_told_where_there_were_some(folder):
    for attention in ("original", "symmetric"):
        change(folder / f"pretrain/tiny-{attention}/seed-1/timing.json", device="NVIDIA H100", processes=2)
    answers = answers_of(Results([folder]))
    assert answers["How long did pre-training take?"] == (
        "2 runs in 3.00 hours (6.00 hours of GPUs), 1.50 hours each on average."
    )
    assert answers["Which machines computed?"].startswith("2 runs of pre-training on 2 × NVIDIA H100, in fp32")


def test_sessions_without_a_record_are_told(folder):
    """A run of three sessions, of which timing.json tells one: its hours looked like those of the whole run."""
    change(folder / "pretrain/tiny-original/seed-1/timing.json", sessions=3)
    answers = answers_of(Results([folder]))
    assert answers["How long did pre-training take?"].endswith("; at least, for the records of 2 sessions are gone.")


def test_stand_ins_and_partial_tasks_are_named(folder):
    assert answers_of(Results([folder]))["Are the data those of the paper?"].startswith("Yes")
    scores = folder / "glue/tiny-original/seed-1/step-1800/rte.json"
    records = json.loads(scores.read_text())
    for facts, said in (
        ({"partial": True}, "In part: of `rte` not all"),
        ({"stand_in": True}, "No: stand-ins replace"),
    ):
        scores.write_text(json.dumps([{**record, **facts} for record in records]))
        assert answers_of(Results([folder]))["Are the data those of the paper?"].startswith(said)


def test_an_import_says_that_its_files_do_not_tell(folder):
    (folder / "import.json").write_text("{}")
    answers = answers_of(Results([folder]))
    for question in ("Which rows were scored?", "Did people annotate or take part?"):
        assert answers[question] == IMPORTED.capitalize() + "."
    assert answers["How many parameters?"] == IMPORTED.capitalize() + "."
    assert "Which machines computed?" not in answers
