"""The demo's files of SuperGLUE, SQuAD 2.0 and BLiMP: the hub's columns and layout, and nothing of their content.

A function below turns one sentence into rows of the hub's columns but for `idx`; of a task with classes one of each.
A context of SQuAD is some sentences of one package, now and then more than a row holds. Of each, four questions name
words that follow each other; the answer is what comes next. Half of the questions name words of another package, and
have none. Of a pair of BLiMP the better sentence is one of documentation, the worse one has two words exchanged.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import demo_tasks as glue
import pyarrow as pa
from demo_tasks import Pool, Sentence, of_split, question_of, rows_in, text_of

from symbert.glue.blimp import PARADIGMS, STAND_IN_PAIRS, published_pairs
from symbert.glue.forms import PLACEHOLDER, QUESTIONS
from symbert.glue.prepare import SENTENCES
from symbert.glue.sources import published_schema
from symbert.glue.tasks import SUITES, Task, published_split

ENTITIES = 4  # of a passage of ReCoRD, at most
FEWEST_SENTENCES, MOST_SENTENCES = 1, 5  # of a context of SQuAD
ASKED = 3  # words
PAIRS = 2  # of a question with and one without answer, of a context

TEXTS = [pa.field(name, pa.string()) for name in (*SENTENCES, "field", "linguistics_term", "UID")]  # of BLiMP
METHODS = ("simple_LM_method", "one_prefix_method", "two_prefix_method", "lexically_identical")
PUBLISHED = pa.schema([*TEXTS, *(pa.field(name, pa.bool_()) for name in METHODS), pa.field("pair_id", pa.int64())])

Row = dict[str, Any]


def write_superglue(sentences: list[Sentence], root: Path) -> None:
    """Write the files of SuperGLUE's tasks below `root`."""
    for task in SUITES["superglue"].tasks.values():
        for split in task.splits:
            rows = rows_of(task, Pool(of_split(sentences, task, split), Random(f"{task.name} {split}")), rows_in(split))
            columns = [[row[column] for row in rows] for column in published_schema(task).names]
            glue.write_rows(root / published_split(task, split).location, task, columns)


def rows_of(task: Task, pool: Pool, count: int) -> list[Row]:
    """`count` rows of a task: those of one sentence after the other."""
    rows: list[Row] = []
    index, passage = published_schema(task).field("idx").type, 0
    while len(rows) < count:
        for answer, row in enumerate(MAKERS[task.name](pool, pool.draw.choice(pool.all))):
            numbers = {"paragraph": passage, "passage": passage, "question": 0, "query": 0, "answer": answer}
            whole = {field.name: numbers[field.name] for field in index} if pa.types.is_struct(index) else len(rows)
            rows.append({**row, "idx": whole})
        passage += 1
    return rows[:count]


def question_of_passage(pool: Pool, sentence: Sentence) -> list[Row]:
    """BoolQ: the passage says what is asked, but not when the words of the question are shuffled."""
    passage = f"{pool.elsewhere(sentence).text} {sentence.text}"
    questions = glue.shuffled_words(pool, sentence), glue.beginning_of(pool, sentence)
    return [
        {"question": question_of(words), "passage": passage, "label": label} for label, words in enumerate(questions)
    ]


def commitment(pool: Pool, sentence: Sentence) -> list[Row]:
    """CB: as the stand-in of MNLI."""
    entailed, neutral, contradicted = glue.inference(pool, sentence)
    texts = entailed, contradicted, neutral
    return [{"premise": row[0], "hypothesis": row[1], "label": label} for label, row in enumerate(texts)]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as the stand-in of GLUE's."""
    texts = glue.entailment(pool, sentence)
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


MAKERS: dict[str, Callable[[Pool, Sentence], list[Row]]] = {
    "boolq": question_of_passage,
    "cb": commitment,
    "copa": alternatives,
    "multirc": answers,
    "record": cloze,
    "superglue_rte": entailment,
    "wic": senses,
    "wsc": reference,
}


def write_squad2(sentences: list[Sentence], root: Path) -> None:
    """Write the files of SQuAD 2.0 below `root`."""
    task = SUITES["squad2"].tasks["squad2"]
    for split in task.splits:
        pool, rows = Pool(of_split(sentences, task, split), Random(f"squad2 {split}")), []
        while len(rows) < rows_in(split):
            rows += questions_of(pool, pool.draw.choice(pool.all), 1 if split == "train" else 2)
        rows = [{"id": f"{split}-{number}", **row} for number, row in enumerate(rows[: rows_in(split)])]
        columns = [[row[name] for row in rows] for name in (*task.columns, *task.details)]
        glue.write_rows(root / published_split(task, split).location, task, columns)


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


def write_blimp(sentences: list[Sentence], root: Path) -> None:
    """Write pairs of all paradigms below `root`."""
    for paradigm, phenomenon in PARADIGMS.items():
        draw, rows = Random(paradigm), []
        while len(rows) < STAND_IN_PAIRS:
            words = list(draw.choice(sentences).words)
            first, second = draw.sample(range(len(words)), 2)
            worse = [*words]
            worse[first], worse[second] = words[second], words[first]
            if worse != words:
                texts = text_of(words), text_of(worse), "stand-in", phenomenon, paradigm
                rows.append((*texts, True, False, False, True, len(rows)))
        columns = [*map(pa.array, zip(*rows, strict=True), PUBLISHED.types)]
        glue.write_table(root / published_pairs(paradigm).location, PUBLISHED, columns)
