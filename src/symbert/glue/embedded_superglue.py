"""The stand-in tasks of SuperGLUE, as `symbert.glue.embedded` makes GLUE's: same files, and nothing of their content.

A function below turns one sentence into rows of the hub's columns but for `idx`; of a task with classes one of each.
"""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from symbert.corpus.documentation import DOCUMENTATION, read_documentation
from symbert.glue import embedded
from symbert.glue.embedded import STAND_IN_EVALUATION_ROWS, STAND_IN_ROWS, Pool, Sentence, text_of
from symbert.glue.forms import PLACEHOLDER, QUESTIONS
from symbert.glue.sources import published_schema, published_split
from symbert.progress import Progress
from symbert.suites import SUITES
from symbert.task import Task

ENTITIES = SUITES["superglue"].tasks["record"].rows_of_stand_in  # of a passage, at most

Row = dict[str, Any]


def write_embedded_superglue(root: Path, documentation: Path = DOCUMENTATION) -> None:
    """Write the files of SuperGLUE's tasks below `root` in the hub's layout, the same bytes for the same text."""
    sentences, tasks = embedded.sentences_in(read_documentation(documentation)), SUITES["superglue"].tasks
    progress = Progress("write embedded superglue", len(tasks), "tasks", interval=0)
    for done, (name, task) in enumerate(tasks.items(), start=1):
        for split in task.splits:
            pool = Pool(embedded.of_split(sentences, task, split), Random(f"{name} {split}"))
            rows = rows_of(task, pool, STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS)
            columns = [[row[column] for row in rows] for column in published_schema(task).names]
            embedded.write_rows(root / published_split(task, split).location, task, columns)
        progress.update(done, name)


def rows_of(task: Task, pool: Pool, count: int) -> list[Row]:
    """`count` rows of a task: those of one sentence after the other."""
    rows: list[Row] = []
    index, passage = published_schema(task).field("idx").type, 0
    while len(rows) < count:
        for answer, row in enumerate(globals()[task.stand_in](pool, pool.draw.choice(pool.all))):
            numbers = {"paragraph": passage, "passage": passage, "question": 0, "query": 0, "answer": answer}
            whole = {field.name: numbers[field.name] for field in index} if pa.types.is_struct(index) else len(rows)
            rows.append({**row, "idx": whole})
        passage += 1
    return rows[:count]


def question_of_passage(pool: Pool, sentence: Sentence) -> list[Row]:
    """BoolQ: the passage says what is asked, but not when the words of the question are shuffled."""
    passage = f"{pool.elsewhere(sentence).text} {sentence.text}"
    questions = embedded.shuffled_words(pool, sentence), embedded.beginning_of(pool, sentence)
    return [
        {"question": embedded.question_of(words), "passage": passage, "label": label}
        for label, words in enumerate(questions)
    ]


def commitment(pool: Pool, sentence: Sentence) -> list[Row]:
    """CB: as the stand-in of MNLI."""
    entailed, neutral, contradicted = embedded.inference(pool, sentence)
    texts = entailed, contradicted, neutral
    return [{"premise": row[0], "hypothesis": row[1], "label": label} for label, row in enumerate(texts)]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as the stand-in of GLUE's."""
    texts = embedded.entailment(pool, sentence)
    return [{"premise": row[0], "hypothesis": row[1], "label": label} for label, row in enumerate(texts)]


def alternatives(pool: Pool, sentence: Sentence) -> list[Row]:
    """COPA: the premise is the first half of a sentence, the right choice its second half, not that of another one."""
    half = len(sentence.words) // 2
    ends = text_of(sentence.words[half:]), text_of(pool.elsewhere(sentence).words[-half:])
    label = pool.draw.randrange(2)
    return [
        {
            "premise": text_of(sentence.words[:half]),
            "choice1": ends[label],
            "choice2": ends[1 - label],
            "question": pool.draw.choice(sorted(QUESTIONS)),
            "label": label,
        }
    ]


def answers(pool: Pool, sentence: Sentence) -> list[Row]:
    """MultiRC: what follows some words of a paragraph; right is a beginning of the rest, and not words of another."""
    other, half = pool.elsewhere(sentence), len(sentence.words) // 2
    right = [sentence.words[half:], sentence.words[half : half + 2]][: pool.draw.randint(1, 2)]
    told = [(words, 1) for words in right] + [(other.words[-half:], 0), (other.words[:2], 0)]
    pool.draw.shuffle(told)
    question = f"What follows {' '.join(sentence.words[:half])}?"
    asked = {"paragraph": f"{sentence.text} {other.text}", "question": question}
    return [{**asked, "answer": " ".join(words), "label": label} for words, label in told]


def cloze(pool: Pool, sentence: Sentence) -> list[Row]:
    """ReCoRD: a word of the sentence is missing from the query, and is among the entities of the passage."""
    other = pool.elsewhere(sentence)
    place = pool.draw.randrange(len(sentence.words))
    query = [*sentence.words[:place], PLACEHOLDER, *sentence.words[place + 1 :]]
    entities = list(dict.fromkeys([*pool.draw.sample(other.words, ENTITIES - 1), sentence.words[place]]))
    pool.draw.shuffle(entities)
    text = {"passage": f"{sentence.text} {other.text}", "query": text_of(query)}
    return [{**text, "entities": entities, "answers": [sentence.words[place]]}]


def senses(pool: Pool, sentence: Sentence) -> list[Row]:
    """WiC: a word has another sense where the words around it stand in another order."""
    place = pool.draw.randrange(len(sentence.words))
    word, around = sentence.words[place], [*sentence.words[:place], *sentence.words[place + 1 :]]
    shuffled = pool.draw.sample(around, len(around))
    rows = []
    for label, words in enumerate(([*shuffled[:place], word, *shuffled[place:]], sentence.words)):
        start1, start2 = (len(" ".join([*before[:place], ""])) for before in (sentence.words, words))
        row = {"word": word, "sentence1": sentence.clause, "sentence2": " ".join(words), "label": label}
        rows.append({**row, "start1": start1, "end1": start1 + len(word), "start2": start2, "end2": start2 + len(word)})
    return rows


def reference(pool: Pool, sentence: Sentence) -> list[Row]:
    """WSC: a pronoun stands for the word that the same words follow before."""
    place, other = pool.draw.sample(range(len(sentence.words) - 1), 2)
    words = [*sentence.words, "it", *sentence.words[place + 1 :]]
    said = {"text": " ".join(words), "span2_text": "it", "span2_index": len(sentence.words)}
    spans = enumerate((other, place))
    return [{**said, "span1_text": words[at], "span1_index": at, "label": label} for label, at in spans]
