"""What is in the published files: rows that contradict themselves, copies, lengths, labels, scores of lengths alone.

    python tools/inspect_data.py --mirror DIR                 prints the tables of docs/published-data.md
    python tools/inspect_data.py --source results/published   of files that were downloaded
    python tools/inspect_data.py --mirror DIR --page docs/published-data.md   writes them there, between their marks

Both folders may be given; tables have what is in one of them: GLUE, SuperGLUE, SQuAD 2.0, BLiMP, UT1. Names of tables
choose some, `--tasks` some tasks. Numbers and row numbers are shown, never a text. Rows count from 0, as in the file.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from scipy.optimize import minimize

from symbert.corpus.blocklist import entry_of, read_entries
from symbert.corpus.wordpiece import encoder
from symbert.glue.blimp import PARADIGMS, published_pairs
from symbert.glue.forms import PLACEHOLDER, formed, normal
from symbert.glue.metrics import majority, measure
from symbert.glue.sources import published_schema, read_published
from symbert.glue.squad import LONGEST_ANSWER, answer_of, offsets_of
from symbert.glue.tasks import HIGHEST_GRADE, PUBLISHED, Task, published_split
from symbert.sources import BLOCKLIST, VOCABULARY, PublishedFile

LISTED = 8  # row numbers in a cell
AT_ONCE = 2_000  # rows that are Python objects
CUTS = (128, 256, 512)  # tokens: of a row above the double of a limit, the limit cuts more than half
EXCHANGED = {"mrpc", "qqp", "stsb", "wic"}  # tasks whose label is that of the texts in the other order, too
OF_EQUAL = {"mrpc": 1, "qqp": 1, "rte": 0, "superglue_rte": 0, "mnli": 0, "cb": 0, "wnli": 1, "stsb": HIGHEST_GRADE}
MARK = re.compile(r"(<!-- begin (\w+) -->\n).*?(?=<!-- end \2 -->)", re.S)
DEFAULTS = Path(__file__).parents[1] / "workflow/defaults.yaml"
BLOCKED = set(yaml.safe_load(DEFAULTS.read_text())["corpus"]["filter"]["blocked_categories"])  # as the authors do
ALLOWED = {"liste_blanche", "liste_bu", "exceptions_liste_bu", "examen_pix"}  # lists that UT1 means to be let through

Texts = tuple[str, ...]
Rows = list[dict[str, Any]]


class Data:
    """The published files in one or two folders."""

    def __init__(
        self, mirror: Path | None, source: Path | None = None, tasks: Iterable[str] = PUBLISHED, has_tokens: bool = True
    ) -> None:
        self.mirror, self.folders, self.tasks = mirror, defaultdict(list), list(tasks)
        for settings in sorted(source.glob("*/settings.json")) if source else ():
            origin = json.loads(settings.read_text(encoding="utf-8"))
            self.folders[origin.get("repository", "ut1")].append(settings.parent)
        vocabulary = self.path(VOCABULARY) if has_tokens else None
        self.encoder = vocabulary and encoder(vocabulary)
        self.rows, self.texts, self.labels, self.tokens = map(
            cache, (self._rows, self._texts, self._labels, self._tokens)
        )

    def path(self, file: PublishedFile) -> Path | None:
        """Where a file is; None where it is in neither folder."""
        places = [folder / file.path for folder in self.folders[file.repository]]
        places += [self.mirror / file.location] if self.mirror else []
        return next(filter(Path.is_file, places), None)

    def has(self, task: Task, split: str) -> bool:
        """Whether there is a split."""
        return task.name in self.tasks and self.path(published_split(task, split)) is not None

    @property
    def splits(self) -> Iterator[tuple[Task, str]]:
        """The splits that there are."""
        return ((task, split) for task in PUBLISHED.values() for split in task.splits if self.has(task, split))

    def is_whole(self, task: Task, split: str) -> bool:
        """Whether a split has as many rows as published."""
        return self.rows(task.name, split).num_rows == task.official_rows[split]

    def _rows(self, name: str, split: str) -> pa.Table:
        """The published rows of a split."""
        task = PUBLISHED[name]
        path = self.path(published_split(task, split))
        return read_published(path, str(path), published_schema(task), task.labels if task.has_label else ())

    def parts(self, task: Task, split: str) -> Iterator[pa.Table]:
        """The rows that models read, some at a time."""
        return formed(task, split, self.rows(task.name, split))

    def _texts(self, name: str, split: str) -> list[Texts]:
        """The text or both texts of each row: as models read them, but for ReCoRD's and SQuAD's, as published."""
        task = PUBLISHED[name]
        columns = {"record": ("passage", "query"), "squad2": ("question", "context")}.get(name, task.columns)
        tables = [self.rows(name, split)]
        if task.form and name != "record":
            tables, columns = list(self.parts(task, split)), ("text", "pair")
        columns = [column for column in columns if column in tables[0].column_names]
        return [texts for table in tables for texts in zip(*(table[c].to_pylist() for c in columns), strict=True)]

    def _labels(self, name: str, split: str) -> list[Any]:
        """The label of each of these rows; None where they have none."""
        rows = self.rows(name, split)
        if name == "squad2":
            return [bool(answers["text"]) for answers in rows["answers"].to_pylist()]
        if name == "record":
            return [None] * rows.num_rows
        return [label for part in self.parts(PUBLISHED[name], split) for label in part["label"].to_pylist()]

    def _tokens(self, name: str, split: str) -> list[list[tuple[int, ...]]]:
        """The word pieces of each text of each row, without a limit."""
        texts = self.texts(name, split)
        known = list({text for row in texts for text in row})
        ids = dict(zip(known, self.encode(known), strict=True))
        return [[ids[text] for text in row] for row in texts]

    def encode(self, texts: list[str]) -> Iterator[tuple[int, ...]]:
        """The word pieces of each text."""
        for at in range(0, len(texts), AT_ONCE):
            encodings = self.encoder.encode_batch_fast(texts[at : at + AT_ONCE], add_special_tokens=False)
            yield from (tuple(encoding.ids) for encoding in encodings)

    def numbers(self, name: str, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of each row that a model reads (`row feature`), and the truth as `metrics.measure` takes it."""
        features, truth = [], defaultdict(list)
        task = PUBLISHED[name]
        for part in self.parts(task, split):
            columns = [c for c in (("text", "pair") if task.form else task.columns) if c in part.column_names]
            features.append(lengths_of([part[column].to_pylist() for column in columns]))
            for column in {"label", "group", "credit"}.intersection(part.column_names):
                truth[column].append(part[column].to_numpy())
        table, columns = np.concatenate(features), {key: np.concatenate(parts) for key, parts in truth.items()}
        if "group" not in columns:
            return table, columns["label"]
        groups = pd.DataFrame(table).groupby(columns["group"])
        relative = table - groups.transform("mean").to_numpy()  # to the other answers to a question
        order = [columns[key] for key in ("label", "group", "credit")]
        return np.hstack([table, relative]), np.rec.fromarrays(order, names="label, group, credit")


def lengths_of(columns: list[list[str]]) -> np.ndarray:
    """`row feature`: the logarithms of the numbers of characters and words of each text, and differences of two."""
    counts = [[(len(text), len(text.split())) for text in column] for column in columns]
    logs = [np.log1p(np.array(count, float).reshape(-1, 2)) for count in counts]
    if len(logs) == 2:
        logs += [logs[0] - logs[1], abs(logs[0] - logs[1])]
    return np.hstack(logs)


def plain(texts: Texts) -> Texts:
    """Texts without what differs in case or in blanks alone."""
    return tuple(" ".join(text.lower().split()) for text in texts)


def ordered(name: str, texts: Texts) -> Texts:
    """`plain`, of a task that compares its texts in one order."""
    return tuple(sorted(plain(texts))) if name in EXCHANGED else plain(texts)


def partial(data: Data) -> pd.DataFrame:
    """The splits that are absent or have other rows than published."""
    lines = []
    for task in PUBLISHED.values():
        for split in filter(lambda split: task.name in data.tasks, task.splits):
            rows = data.rows(task.name, split).num_rows if data.has(task, split) else 0
            if rows != task.official_rows[split]:
                lines.append({"task": task.name, "split": split, "rows": rows, "published": task.official_rows[split]})
    return pd.DataFrame(lines, dtype=object)


# --- rows that contradict themselves


def contradictions(data: Data) -> pd.DataFrame:
    """What rows say of themselves and is not so."""
    found = []
    for task, split in data.splits:
        checks = general(data, task, split)
        if task.name in SPECIAL:
            checks = chain(checks, SPECIAL[task.name](data, data.rows(task.name, split).to_pylist()))
        for what, of, places in checks:
            if places:
                numbers = listed(places) if data.is_whole(task, split) else "–"
                found.append((task.name, split, what, len(places), of, numbers))
    return pd.DataFrame(found, columns=["task", "split", "what", "found", "of", "rows"])


def listed(places: Iterable[Any]) -> str:
    """Row numbers, at most LISTED of them."""
    places = list(map(str, places))
    return ", ".join(places[:LISTED]) + ", …" * (len(places) > LISTED)


Checks = Iterator[tuple[str, int, list[Any]]]  # what is checked, among how many, and where it is so


def general(data: Data, task: Task, split: str) -> Checks:
    """Checks of any task: number, equal texts, and equal rows of other labels."""
    rows, texts, labels = data.rows(task.name, split), data.texts(task.name, split), data.labels(task.name, split)
    if "idx" in rows.column_names and task.name != "mrpc":  # whose rows have the numbers of the file that was split
        numbers = [tuple(i.values()) if isinstance(i, dict) else i for i in rows["idx"].to_pylist()]
        yield "`idx` of an earlier row", len(numbers), repeated(numbers)
        if not isinstance(numbers[0], tuple):
            yield "`idx` is not its place", len(numbers), [at for at, i in enumerate(numbers) if at != i]
    if task.name in OF_EQUAL:
        expected = OF_EQUAL[task.name]
        equal = [at for at, pair in enumerate(texts) if len(set(plain(pair))) == 1]
        unlike = [at for at in equal if labels[at] != expected]
        word = "another grade" if task.name == "stsb" else f"not {task.labels[expected]}"
        yield f"both texts are equal, {word}", len(equal), unlike
    if task.head != "choices":  # whose texts are equal but for the choice
        labelled = defaultdict(list)
        for at, text in enumerate(texts):
            labelled[ordered(task.name, text)].append(at)
        several = [places for places in labelled.values() if len({labels[at] for at in places}) > 1]
        yield "texts of another row, with another label", len(texts), sorted(at for places in several for at in places)


def repeated(values: Iterable[Any]) -> list[int]:
    """Where a value stands that stood earlier."""
    seen, places = set(), []
    for at, value in enumerate(values):
        if value in seen:
            places.append(at)
        seen.add(value)
    return places


def of_wsc(data: Data, rows: Rows) -> Checks:
    """Index and words of both phrases."""
    other, part, case, overlapping = [], [], [], []
    for at, row in enumerate(rows):
        words, spans, kinds = row["text"].split(), [], set()
        for number in (1, 2):
            phrase, first = row[f"span{number}_text"].split(), row[f"span{number}_index"]
            found = words[first : first + len(phrase)]
            spans.append(range(first, first + len(phrase)))
            bare = [word.strip(".,;:!?\"'").lower() for word in found]
            if found != phrase:
                is_case = bare == [word.strip(".,;:!?\"'").lower() for word in phrase]
                is_part = " ".join(phrase).lower() in " ".join(found).lower()
                kinds.add("case" if is_case else "part" if is_part else "other")
        for kind, places in (("other", other), ("part", part), ("case", case)):
            places += [at] * (kind in kinds)
        overlapping += [at] * bool(set(spans[0]) & set(spans[1]))
    yield "an index points at other words", len(rows), other
    yield "an index points at a word of which the phrase is a part", len(rows), part
    yield "a phrase is written otherwise than in the text (case, punctuation)", len(rows), case
    yield "both phrases share a word", len(rows), overlapping
    true = defaultdict(set)
    for row in rows:
        if row["label"]:
            true[row["text"], row["span2_index"]].add(row["span1_text"].lower())
    several = {key for key, phrases in true.items() if len(phrases) > 1}
    places = [at for at, row in enumerate(rows) if row["label"] and (row["text"], row["span2_index"]) in several]
    yield "a pronoun stands for two phrases", len(rows), places


def of_wic(data: Data, rows: Rows) -> Checks:
    """Marked words, and what the labels of several rows say together."""
    other, cut = [], []
    for at, row in enumerate(rows):
        for number in (1, 2):
            text, start, end = (row[f"{key}{number}"] for key in ("sentence", "start", "end"))
            other += [at] * (text[start:end][:1].lower() != row["word"][:1].lower())
            cut += [at] * (text[:start][-1:].isalnum() or text[end:][:1].isalnum())
    yield "a marked word begins with another letter than the word (is, went)", len(rows), sorted(set(other))
    yield "a mark begins or ends within a word", len(rows), sorted(set(cut))
    same = [at for at, row in enumerate(rows) if (row["sentence1"], row["start1"]) == (row["sentence2"], row["start2"])]
    yield "both sentences and places are equal", len(rows), same
    sense: dict[Any, Any] = {}

    def first(use: Any) -> Any:
        while sense.setdefault(use, use) != use:
            use = sense[use]
        return use

    uses = [[(row["word"], row[f"sentence{n}"], row[f"start{n}"]) for n in (1, 2)] for row in rows]
    for row, (one, other) in zip(rows, uses, strict=True):
        if row["label"]:
            sense[first(one)] = first(other)
    places = [at for at, (one, other) in enumerate(uses) if not rows[at]["label"] and first(one) == first(other)]
    yield "two uses are not of one sense, which other rows say they are", len(rows), places


def of_multirc(data: Data, rows: Rows) -> Checks:
    """Answers to a question."""
    questions = defaultdict(list)
    for at, row in enumerate(rows):
        questions[row["idx"]["paragraph"], row["idx"]["question"]].append(at)
    rights = {places[0]: [rows[at]["label"] for at in places] for places in questions.values()}
    yield "no answer to the question is right", len(rights), [at for at, right in rights.items() if not any(right)]
    yield "every answer to the question is right", len(rights), [at for at, right in rights.items() if all(right)]
    yield "the question has one answer", len(rights), [at for at, right in rights.items() if len(right) == 1]
    yield (
        "the answer has no letter or digit",
        len(rows),
        [at for at, row in enumerate(rows) if not any(map(str.isalnum, row["answer"].strip("'\"")))],
    )


def of_copa(data: Data, rows: Rows) -> Checks:
    """Choices."""
    yield (
        "both choices are equal",
        len(rows),
        [at for at, row in enumerate(rows) if plain((row["choice1"],)) == plain((row["choice2"],))],
    )


def of_record(data: Data, rows: Rows) -> Checks:
    """Queries, entities and answers."""
    yield (
        "the query has several gaps",
        len(rows),
        [at for at, row in enumerate(rows) if row["query"].count(PLACEHOLDER) > 1],
    )
    yield (
        "no answer is an entity of the passage",
        len(rows),
        [at for at, row in enumerate(rows) if not {*map(normal, row["answers"])} & {*map(normal, row["entities"])}],
    )
    yield (
        "every entity is an answer",
        len(rows),
        [at for at, row in enumerate(rows) if {*map(normal, row["entities"])} <= {*map(normal, row["answers"])}],
    )
    yield (
        "an entity is not in the passage as it is written",
        len(rows),
        [at for at, row in enumerate(rows) if not all(entity in row["passage"] for entity in row["entities"])],
    )


def of_squad(data: Data, rows: Rows) -> Checks:
    """Answers and their places."""
    wrong, within, long, absent = [], [], [], []
    contexts: dict[str, np.ndarray] = {}
    for at, row in enumerate(rows):
        context = row["context"]
        if data.encoder and context not in contexts:
            contexts[context] = offsets_of(context, data.encoder.encode(context, add_special_tokens=False))
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            end = start + len(text)
            if context[start:end] != text:
                wrong.append(at)
                continue
            before, after = (context[:start][-1:], text[:1]), (text[-1:], context[end:][:1])
            within += [at] * any(all(map(str.isalnum, border)) and all(border) for border in (before, after))
            absent += [at] * (not normal(text))
            if data.encoder:
                one = {**row, "answers": {"text": [text], "answer_start": [start]}}
                tokens = answer_of(one, contexts[context])
                long += [at] * (tokens is not None and tokens[1] - tokens[0] >= LONGEST_ANSWER)
    yield "an answer is not where its start says", len(rows), sorted(set(wrong))
    yield "an answer begins or ends within a word", len(rows), sorted(set(within))
    yield "nothing is left of an answer in normal form", len(rows), sorted(set(absent))
    yield f"an answer of more than {LONGEST_ANSWER} tokens", len(rows), sorted(set(long))


SPECIAL: dict[str, Callable[[Data, Rows], Checks]] = {
    **{"wsc": of_wsc, "wic": of_wic, "multirc": of_multirc},
    **{"copa": of_copa, "record": of_record, "squad2": of_squad},
}


# --- copies, lengths, labels


def copies(data: Data) -> pd.DataFrame:
    """Rows that are another row again, within training and evaluation rows, and evaluation rows that are trained on."""
    lines = []
    for task, split in data.splits:
        name, texts = task.name, data.texts(task.name, split)
        normal_form = [ordered(name, row) for row in texts]
        line = {"task": name, "split": split, "rows": len(texts)}
        line |= {"again": len(repeated(texts)), "again, plain": len(repeated(normal_form))}
        if split != "train" and data.has(task, "train"):
            trained, labels = data.texts(name, "train"), data.labels(name, split)
            exact, firsts = {*trained}, {plain(row)[0] for row in trained}
            label_of = dict(zip((ordered(name, row) for row in trained), data.labels(name, "train"), strict=True))
            in_train = [at for at, row in enumerate(normal_form) if row in label_of]
            line |= {"in train": sum(row in exact for row in texts), "in train, plain": len(in_train)}
            line["… of another label"] = sum(label_of[normal_form[at]] != labels[at] for at in in_train)
            if data.encoder:
                known = {tuple(row) for row in data.tokens(name, "train")}
                line["token ids in train"] = sum(tuple(row) in known for row in data.tokens(name, split))
            if len(texts[0]) == 2:
                line["first text in train"] = sum(plain(row)[0] in firsts for row in texts)
        lines.append(line)
    return pd.DataFrame(lines, dtype=object)


def lengths(data: Data) -> pd.DataFrame:
    """Rows without text, and rows by their tokens, of which [CLS] and each [SEP] is one."""
    lines = []
    for task, split in data.splits:
        texts, line = data.texts(task.name, split), {"task": task.name, "split": split}
        line |= {"rows": len(texts), "an empty text": sum(not all(map(str.strip, row)) for row in texts)}
        if data.encoder:
            tokens = np.array([sum(map(len, row)) + 1 + len(row) for row in data.tokens(task.name, split)])
            line |= {"median": int(np.median(tokens)), "longest": int(tokens.max())}
            line |= {f"> {limit}": int((tokens > limit).sum()) for limit in CUTS}
        lines.append(line)
    return pd.DataFrame(lines, dtype=object)


def labels(data: Data) -> pd.DataFrame:
    """Labels, and what the majority and lengths alone score, in percent."""
    lines = []
    for task, split in data.splits:
        if split == "train":
            continue
        line = {"column": task.scores[split], "evaluated": balance(data, task, split)}
        if task.head == "spans":
            line["majority"] = 100 * float(np.mean([not has_answer for has_answer in data.labels(task.name, split)]))
        elif data.has(task, "train"):
            (given, training), (asked, truth) = data.numbers(task.name, "train"), data.numbers(task.name, split)
            predicted = by_lengths(task, given, training, asked)
            line["majority"] = 100 * fmean(majority(task, training, truth).values())
            line["lengths"] = 100 * fmean(measure(task, truth, predicted).values())
            line["more"] = line["lengths"] - line["majority"]
        line["train"] = balance(data, task, "train") if data.has(task, "train") else "–"
        lines.append(line)
    order = ["column", "train", "evaluated", "majority", "lengths", "more"]
    return pd.DataFrame(lines, columns=order, dtype=object)


def balance(data: Data, task: Task, split: str) -> str:
    """Shares of the labels in percent, in their order; the mean grade; of SQuAD the questions without an answer."""
    rows = data.rows(task.name, split)
    if task.head == "grades":
        return f"mean {np.mean(rows['label'].to_numpy()):.2f}"
    if task.name == "record":
        return "–"
    found = np.array(rows["label"].to_pylist() if task.has_label else data.labels(task.name, split), int)
    return " / ".join(f"{100 * share:.1f}" for share in np.bincount(found, minlength=len(task.labels)) / len(found))


def by_lengths(task: Task, given: np.ndarray, training: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Predictions of a model of lengths alone, fitted on training rows: logistic regression, of grades linear."""
    mean, deviation = given.mean(axis=0), given.std(axis=0)
    deviation[deviation == 0] = 1
    given, asked = (np.column_stack([(x - mean) / deviation, np.ones(len(x))]) for x in (given, asked))
    truth = training["label"] if training.dtype.names else training
    if task.head == "grades":
        return asked @ np.linalg.lstsq(given, truth, rcond=None)[0]
    classes = len(task.labels)
    wanted = np.eye(classes)[truth.astype(int)]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, classes)
        logits = given @ weights
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        gradient = given.T @ (np.exp(logs) - wanted) / len(given) + 1e-3 * weights
        return -float((logs * wanted).sum()) / len(given) + 5e-4 * float((flat**2).sum()), gradient.ravel()

    weights = minimize(loss, np.zeros(given.shape[1] * classes), jac=True, method="L-BFGS-B").x.reshape(-1, classes)
    logits = asked @ weights
    return logits.argmax(axis=1) if task.head == "classes" else logits[:, 1] - logits[:, 0]


# --- BLiMP


def pairs_of(data: Data) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each paradigm that there is, with its acceptable and its other sentences."""
    for paradigm in PARADIGMS:
        if path := data.path(published_pairs(paradigm)):
            table = pq.read_table(path, columns=["sentence_good", "sentence_bad"])
            yield paradigm, table["sentence_good"].to_pylist(), table["sentence_bad"].to_pylist()


def blimp(data: Data) -> pd.DataFrame:
    """What the pairs of BLiMP are."""
    pairs = [(name, at, *pair) for name, *sides in pairs_of(data) for at, pair in enumerate(zip(*sides, strict=True))]
    if not pairs:
        return pd.DataFrame()
    equal = {at for at, (*_, good, bad) in enumerate(pairs) if good == bad}
    alike = {at for at, (*_, good, bad) in enumerate(pairs) if plain((good,)) == plain((bad,))}
    found: dict[str, Iterable[int]] = {"the sentences are equal": equal, "… but for case and blanks": alike - equal}
    if data.encoder:
        ids = zip(*(data.encode([pair[side] for pair in pairs]) for side in (2, 3)), strict=True)
        found["… in word pieces alone"] = {at for at, (good, bad) in enumerate(ids) if good == bad} - equal
    found["the pair stands in its paradigm earlier"] = repeated((name, *sides) for name, _, *sides in pairs)
    bad_ones = {bad for *_, bad in pairs}
    acceptable = {at for at, (*_, good, _) in enumerate(pairs) if good in bad_ones}
    found["the acceptable sentence is the other one of another pair"] = acceptable - equal
    lines = [
        (what, len(places), len(pairs), listed(f"{pairs[at][0]} {pairs[at][1]}" for at in sorted(places)) or "–")
        for what, places in found.items()
    ]
    return pd.DataFrame(lines, columns=["what", "found", "of", "rows"])


def blimp_lengths(data: Data) -> pd.DataFrame:
    """How often in percent the acceptable sentence is the shorter one, a tie as half; by what is counted."""
    counts: dict[str, Callable[[list[str]], Iterable[int]]] = {
        "characters": lambda texts: map(len, texts),
        "words": lambda texts: (len(text.split()) for text in texts),
    }
    if data.encoder:
        counts["word pieces"] = lambda texts: map(len, data.encode(texts))
    shares: dict[str, list[float]] = defaultdict(list)
    for _, *sides in pairs_of(data):
        for name, count in counts.items():
            good, bad = (np.fromiter(count(side), int) for side in sides)
            shares[name].append(100 * float(np.mean((good < bad) + 0.5 * (good == bad))))
    lines = []
    for name, values in shares.items():
        shorter = np.array(values)
        better = np.maximum(shorter, 100 - shorter)
        line = {"counted": name, "mean": shorter.mean(), "lowest": shorter.min(), "highest": shorter.max()}
        line |= {"paradigms at 50": int((shorter == 50).sum()), "beyond 10 and 90": int((better >= 90).sum())}
        lines.append(line | {"shorter or longer, by paradigm": better.mean()})
    return pd.DataFrame(lines, dtype=object)


# --- UT1


@cache
def entries_of(archive: Path) -> list[tuple[str, str, str, str | None]]:
    """Category, kind, text of each entry of UT1, and the address that the matcher looks up; None where it is none."""
    entries = []
    for category, kind, text in read_entries(archive, {}):
        if text:
            address = entry_of(text)
            key = address and (address.host if kind == "domains" else address.location)
            entries.append((category, kind, text, key))
    return entries


def categories_of(archive: Path) -> dict[str, set[str]]:
    """The categories of each address of UT1: of hosts, and of pages, which have a slash."""
    listed_in: dict[str, set[str]] = defaultdict(set)
    for category, _, _, key in entries_of(archive):
        if key:
            listed_in[key].add(category)
    return listed_in


def ut1(data: Data) -> pd.DataFrame:
    """What the entries of UT1 are to the matcher, and addresses of several categories."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    if not (archive := data.path(BLOCKLIST)):
        return pd.DataFrame()
    of_queries, seen = set(), set()
    for category, kind, text, key in entries_of(archive):
        found["entries"][kind] += 1
        found["no address"][kind] += key is None
        found["in the same list earlier"][kind] += (category, kind, key) in seen
        found["another address to the matcher"][kind] += key not in (None, text)
        found["… because it loses a query"][kind] += key != text and "?" in text
        of_queries |= {key} if key and "?" in text else set()
        seen.add((category, kind, key))
    found["… which are so many addresses"] = Counter(urls=len(of_queries))
    found["… first pages of sites among these"] = Counter(urls=sum(key.find("/") == len(key) - 1 for key in of_queries))
    listed_in = categories_of(archive)
    for key, categories in listed_in.items():
        host, kind = key.partition("/")[0], "urls" if "/" in key else "domains"
        labels = host.split(".")
        parents = [".".join(labels[at:]) for at in range(1, len(labels) - 1)]
        blocked = categories.intersection(BLOCKED)
        found["distinct"][kind] += 1
        found["in several categories"][kind] += len(categories) > 1
        found["in some of the 11 and in others"][kind] += 0 < len(blocked) < len(categories)
        found["… in a list of what is allowed"][kind] += bool(blocked) and not categories.isdisjoint(ALLOWED)
        found["its host is listed, too"][kind] += kind == "urls" and host in listed_in
        found["a parent of its host is listed, too"][kind] += any(map(listed_in.__contains__, parents))
    rows = [{"what": what, "domains": counts["domains"], "urls": counts["urls"]} for what, counts in found.items()]
    return pd.DataFrame(rows, dtype=object)


def ut1_together(data: Data) -> pd.DataFrame:
    """The sets of categories that most hosts share."""
    if not (archive := data.path(BLOCKLIST)):
        return pd.DataFrame()
    sets = Counter(" ".join(sorted(categories)) for key, categories in categories_of(archive).items() if "/" not in key)
    several = [(names, hosts) for names, hosts in sets.most_common() if " " in names]
    return pd.DataFrame(several[:LISTED], columns=["categories", "hosts"])


# --- Markdown

TABLES: dict[str, Callable[[Data], pd.DataFrame]] = {
    table.__name__: table
    for table in (partial, contradictions, copies, lengths, labels, blimp, blimp_lengths, ut1, ut1_together)
}


def markdown(table: pd.DataFrame) -> str:
    """A table for readers: whole numbers with commas, others with two decimals, a dash for what is not there."""
    if table.empty:
        return "Nothing to show.\n"
    heads = map(str, table.columns)
    rules = ["---" if table[name].map(lambda cell: isinstance(cell, str)).any() else "---:" for name in table]
    rows = [[shown(cell) for cell in row] for row in table.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, rules, *rows])


def shown(cell: Any) -> str:
    """A cell as text."""
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, float | np.floating):
        return f"{cell:.2f}".replace("-", "−")
    return f"{cell:,}" if isinstance(cell, int | np.integer) else cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", type=Path, help="a folder with the publishers' files in their layout")
    parser.add_argument("--source", type=Path, help="the folder of downloaded files: results/published")
    parser.add_argument("--page", type=Path, help="write the tables between the marks of this file")
    parser.add_argument("--tasks", nargs="+", choices=PUBLISHED, default=list(PUBLISHED), help="some tasks")
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="names of tables; all")
    given = parser.parse_args()
    if not (given.mirror or given.source):
        parser.error("--mirror or --source is needed")
    data = Data(given.mirror, given.source, given.tasks)
    made = {name: markdown(TABLES[name](data)) for name in given.tables or TABLES}
    if not given.page:
        print("\n".join(f"## {name}\n\n{table}" for name, table in made.items()))
        return
    text = given.page.read_text(encoding="utf-8")
    text = MARK.sub(lambda mark: f"{mark[1]}\n{made[mark[2]]}\n" if mark[2] in made else mark[0], text)
    given.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
