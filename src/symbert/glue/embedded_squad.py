"""SQuAD 2.0 as stand-in files, made from the documentation of packages: the columns and layout of the hub.

A context is some sentences of one package, now and then more than a row holds. Of each, four questions name words that
follow each other; the answer is what comes next. Half of the questions name words of another package, and have none.
"""

from pathlib import Path
from random import Random
from typing import Any

from symbert.corpus.documentation import DOCUMENTATION, read_documentation
from symbert.glue import embedded
from symbert.glue.embedded import STAND_IN_EVALUATION_ROWS, STAND_IN_ROWS, Pool, Sentence
from symbert.glue.sources import published_split
from symbert.progress import Progress
from symbert.suites import SUITES

FEWEST_SENTENCES, MOST_SENTENCES = 1, 5  # of a context
ASKED = 3  # words
PAIRS = 2  # of a question with and one without answer, of a context

Row = dict[str, Any]


def write_embedded_squad2(root: Path, documentation: Path = DOCUMENTATION) -> None:
    """Write the files of SQuAD 2.0 below `root` in the hub's layout, the same bytes for the same text."""
    sentences, task = embedded.sentences_in(read_documentation(documentation)), SUITES["squad2"].tasks["squad2"]
    progress = Progress("write embedded squad2", len(task.splits), "splits", interval=0)
    for done, split in enumerate(task.splits, start=1):
        pool = Pool(embedded.of_split(sentences, task, split), Random(f"squad2 {split}"))
        count = STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS
        rows: list[Row] = []
        while len(rows) < count:
            rows += questions_of(pool, pool.draw.choice(pool.all), 1 if split == "train" else 2)
        rows = [{"id": f"{split}-{number}", **row} for number, row in enumerate(rows[:count])]
        columns = [[row[name] for row in rows] for name in (*task.columns, *task.details)]
        embedded.write_rows(root / published_split(task, split).location, task, columns)
        progress.update(done, split)


def questions_of(pool: Pool, sentence: Sentence, answers: int) -> list[Row]:
    """Questions on a context with this sentence: in turn one with as many answers as said, and one without."""
    same = [each for each in pool.all if each.package == sentence.package and each != sentence]
    others = pool.draw.sample(same, min(pool.draw.randint(FEWEST_SENTENCES, MOST_SENTENCES) - 1, len(same)))
    sentences = [sentence, *others]
    pool.draw.shuffle(sentences)
    context, rows = " ".join(each.text for each in sentences), []
    for asked in (pool.draw.choice(sentences) for _ in range(PAIRS)):
        place, start = pool.draw.randrange(len(asked.words) - ASKED - 1), context.index(asked.text)
        begin = start + len(" ".join(asked.words[: place + ASKED])) + 1
        texts = [" ".join(asked.words[place + ASKED :][: words + 1]) for words in range(answers)]
        texts = [text for text in texts if context.startswith(text, begin)]
        known = {"text": texts, "answer_start": [begin] * len(texts)}
        while (unknown := " ".join(pool.elsewhere(sentence).words[:ASKED])) in context:
            pass
        given = " ".join(asked.words[place : place + ASKED])
        for words, found in ((given, known), (unknown, {"text": [], "answer_start": []})):
            question = f"What follows {words}?"
            rows.append({"title": sentence.package, "context": context, "question": question, "answers": found})
    return rows
