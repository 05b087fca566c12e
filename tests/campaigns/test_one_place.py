"""To add something takes as few edits as the documentation says, and the results of a chain then have it.

A copy of the project gets one of everything: an operator, a size and a task, which need no edit, a built-in operator, a
task of GLUE, an architecture, a filter, a table and a metric of a training step.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from workflow.checkout import ENVIRONMENT, check_out

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.campaign

CONFIGURATION = """\
operators: {shifted: {class: "outside_package.operators:Biased"}}
sizes: {slim: {num_hidden_layers: 1, hidden_size: 32, num_attention_heads: 2, intermediate_size: 64}}
tasks:
  shouting: {train: ../data/train.csv, validation: ../data/dev.csv, columns: [text], labels: [no, yes], metric: f1}
corpus:
  filter: {rules: [categories, perplexity, quality_warnings, brevity]}
  pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}
pretrain: {steps: 20, batch_size: 8, warmup_steps: 5, evaluate_every: 5, save_every: 5}
glue: {max_examples: 32, max_evaluation_examples: 32, max_length: 32, epochs: 1, robustness: {noise: []}}
sweep:
  sizes: [slim]
  attention: [original, shifted]
  pretrain_seeds: [1]
  finetune_seeds: [1]
  tasks: [rte, sst2, shouting]
  curve: {sizes: [slim], steps: {slim: [10, 20]}}
"""

TABLE = '''\
def last_losses(data: Collection) -> Table:
    """The validation loss of each model at its last step."""
    from symbert.report.formats import table_of

    last = data.runs.groupby(["size", "attention"], sort=False)["loss"].last()
    rows = [{"model": f"{size}-{attention}", "loss": loss} for (size, attention), loss in last.items()]
    return table_of(rows)


'''

LISTED = '        Exhibit("figure3_checkpoints", '  # before which exhibits are listed
TABLE_LINE = '        Exhibit("last_losses", last_losses, "Last losses", "In nats, at the last step."),\n'

FILTER = """\
    "brevity": {"too_short": lambda document, listed, settings: len(document.content) < 2000},
"""

BUILT_IN = '''\
class TwiceAttention(OriginalAttention):
    """2 Q(x) K(y)ᵀ: the logits of `original`, doubled."""

    description = Description(control_of="original")

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query, key, value = super().query_key_value(hidden)
        return 2 * query, key, value


'''

ARCHITECTURE = """\
    "backwards": Architecture(
        "symbert.model.bert:DecoderModel",
        "symbert.pretrain.tasks:TokenBefore",
        "Backward decoders predict the token before.",
        measure="perplexity",
        step_flops=_next_tokens,
        tokens=lambda rows: rows.tokens - 1,
    ),
"""

ARCHITECTURE_TASK = '''

class TokenBefore(NextToken):
    """The token before each token: rows are read from their ends."""

    def _batch_of(self, split: PackedRows, seed: int, epoch: Ids, rows: Ids) -> Batch:
        ids = torch.from_numpy(split[rows]).flip(1)
        return {"input_ids": ids[:, :-1], "targets": ids[:, 1:]}
'''

GLUE_TASK = """\
    Task("diagnostic", columns=("premise", "hypothesis"), labels=("entailment", "other"), metrics=("matthews",)),
"""

# What each addition writes: a file, the text in it before which it is written (none: its end), and the text itself.
# An operator, a size and a task are configuration, which is no edit of the project.
EDITS: dict[str, list[tuple[str, str, str]]] = {
    "operator": [],
    "built-in operator": [("src/symbert/model/attention.py", "class SymmetricAttention", BUILT_IN)],
    "task of GLUE": [("src/symbert/glue/tasks.py", '    Task("wnli"', GLUE_TASK)],
    "size": [],
    "task": [],
    "architecture": [
        ("src/symbert/architectures.py", "}\nENCODER, *OTHERS", ARCHITECTURE),
        ("src/symbert/pretrain/tasks.py", "", ARCHITECTURE_TASK),
    ],
    "filter": [
        ("src/symbert/corpus/filters.py", '}\n"""Of the reasons', FILTER),
    ],
    "table": [
        ("src/symbert/report/exhibits.py", "EXHIBITS: dict", TABLE),
        ("src/symbert/report/exhibits.py", LISTED, TABLE_LINE),
    ],
    "metric": [
        (
            "src/symbert/pretrain/train.py",
            "\n\n@dataclass(frozen=True)\nclass Started:",
            "    perplexity: float = math.nan\n",
        ),
        ("src/symbert/pretrain/train.py", "\n\nclass Trainer:", "    perplexity: float\n"),
        ("src/symbert/pretrain/train.py", ")\n\n    @property\n    def flags", ", math.exp(loss)"),
    ],
}
FILES = {"operator": 0, "size": 0, "task": 0, "architecture": 2}  # that an addition edits; each of the others edits one


@dataclass(frozen=True)
class Extended:
    """A copy of the project with the additions, beside a package of somebody else."""

    directory: Path
    edited: dict[str, set[str]]  # files by addition

    def run(self, *words: str) -> str:
        """What a Python command prints, in the folder of the copy."""
        packages = os.pathsep.join([str(self.directory / "src"), str(self.directory.parent / "packages")])
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": packages}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.directory, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout + done.stderr

    def snakemake(self, *words: str) -> str:
        """What Snakemake says with the configuration of the additions."""
        (self.directory / "own.yaml").write_text(CONFIGURATION)
        return self.run("-m", "snakemake", "--cores", "2", "--configfile", "own.yaml", *words)


def contents(directory: Path) -> dict[str, bytes]:
    """All files of a copy."""
    files = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Extended:
    """A copy of the project in which each addition was made; the operator is the one of docs/operators.md."""
    folder = tmp_path_factory.mktemp("one_place")
    copy = check_out(ROOT, folder / "symbert").directory
    package = folder / "packages/outside_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/operators.md").read_text(encoding="utf-8"), re.S)
    (example,) = (block for block in blocks if "class " in block)
    (package / "operators.py").write_text(example, encoding="utf-8")
    (folder / "data").mkdir()
    for name, count in (("train", 40), ("dev", 12)):
        texts = [f"{'WORD!' * (number % 2)} {name} number {number}" for number in range(count)]
        rows = [f"{text},{('no', 'yes')[number % 2]}" for number, text in enumerate(texts)]
        (folder / f"data/{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    edited = {}
    for addition, edits in EDITS.items():
        before = contents(copy)
        for name, following, text in edits:
            file = copy / name
            file.touch()
            content = file.read_text(encoding="utf-8")
            head, tail = content.split(following) if following else (content, "")
            file.write_text(head + text + following + tail, encoding="utf-8")
        after = contents(copy)
        edited[addition] = {name for name in after if after[name] != before.get(name)}
    return Extended(copy, edited)


def test_an_addition_edits_as_few_files_as_it_should(extended):
    files = {addition: len(names) for addition, names in extended.edited.items()}
    assert files == {addition: FILES.get(addition, 1) for addition in EDITS}


def test_the_new_operator_size_and_architecture_have_runs(extended):
    said = extended.snakemake("--dry-run", "--config", "sweep={architectures: [encoder, backwards]}")
    assert re.search(r"runs/backwards/slim-shifted-[0-9a-f]{8}/seed-1/done.json", said)
    for attention in ("original", "shifted"):
        assert re.search(rf"runs/encoder/slim-{attention}-[0-9a-f]{{8}}/seed-1/done.json", said)
    assert re.search(r"^pretrain +4$", said, re.M), "no other size and operator"


def test_the_built_in_operator_is_known_and_right(extended):
    said = extended.run("-m", "symbert", "check-operator", "twice")
    assert "every weight follows from the seed" in said and "failed" not in said


def test_the_task_of_glue_belongs_to_its_suite(extended):
    program = "from symbert.glue.tasks import suite_of, task_named; "
    program += "print(task_named('diagnostic').columns, suite_of('diagnostic').name)"
    assert extended.run("-c", program) == "('premise', 'hypothesis') glue\n"


@pytest.fixture(scope="module")
def results(extended) -> Path:
    """The results of the chain, which runs once."""
    extended.snakemake()
    return extended.directory / "results/demo-embedded"


def text_of(results: Path, table: str) -> str:
    """A table as csv."""
    return (results / f"report/tables/{table}.csv").read_text(encoding="utf-8")


def rows_of(results: Path, table: str) -> list[dict[str, str]]:
    """The rows of a table."""
    return list(csv.DictReader(io.StringIO(text_of(results, table))))


class TestChain:
    """What the results of a chain have of each addition."""

    def test_the_operator_is_in_every_table_and_on_its_card(self, results):
        formula = "(Q(x) + u) Q(y)ᵀ"
        assert "shifted" in text_of(results, "table1_operators") and formula in text_of(results, "table1_operators")
        for table in ("table2_parameters", "table2_training", "table3_glue", "statistics"):
            assert "shifted" in text_of(results, table), table
        (checkpoint,) = results.parent.glob("runs/encoder/slim-shifted-*/seed-1/step-20")
        assert formula in (checkpoint / "README.md").read_text(encoding="utf-8")
        config = json.loads((checkpoint / "config.json").read_text())
        assert config["operator"]["path"] == "outside_package.operators:Biased"

    def test_the_size_is_in_table_2_and_has_runs(self, results):
        assert "slim" in text_of(results, "table2_parameters")
        for attention in ("original", "shifted"):
            (done,) = results.parent.glob(f"runs/encoder/slim-{attention}-*/seed-1/done.json")
            told = json.loads(done.read_text())
            assert (told["size"], told["attention"], told["steps"]) == ("slim", attention, 20)

    def test_the_task_has_scores_beside_the_glue_score_and_is_no_stand_in(self, results):
        (file,) = results.parent.glob("scores/shouting-*/encoder/slim-shifted-*/seed-1/step-20/*.json")
        scores = json.loads(file.read_text())
        assert [list(record["metrics"]) for record in scores] == [["shouting"]] and not scores[0]["stand_in"]
        row = next(row for row in rows_of(results, "table3_glue") if row["model"] == "slim-shifted")
        counted = [float(row[f"{task} (stand-in)"]) for task in ("rte", "sst2")]
        assert float(row["glue_score (stand-in)"]) == pytest.approx(sum(counted) / 2, abs=0.01)
        assert float(row["shouting"]) == pytest.approx(100 * scores[0]["metrics"]["shouting"], abs=0.01)

    def test_the_reason_of_the_filter_is_counted_and_in_the_table_of_the_corpus(self, results):
        files = results.parent.glob("corpus/parts-*/*.json")
        parts = [json.loads(file.read_text()) for file in files if file.name != "settings.json"]
        counted = sum(part["counts"]["dropped"]["too_short"] for part in parts)
        assert counted > 0
        total = next(row for row in rows_of(results, "corpus") if row["part"] == "total")
        assert total["too_short"] == str(counted)

    def test_the_table_is_on_the_page(self, results):
        assert {row["model"] for row in rows_of(results, "last_losses")} == {"slim-original", "slim-shifted"}
        assert ">Last losses</h3>" in (results / "report/report.html").read_text(encoding="utf-8")

    def test_the_metric_is_in_the_log_of_the_training(self, results):
        (log,) = results.parent.glob("runs/encoder/slim-shifted-*/seed-1/metrics.jsonl")
        logged = [line for line in map(json.loads, log.read_text().splitlines()) if line["split"] == "train"]
        assert [line["step"] for line in logged] == [10, 20]
        assert all(line["perplexity"] == pytest.approx(2.718281828 ** line["loss"], rel=1e-6) for line in logged)
