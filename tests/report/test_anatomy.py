"""Tables and figures of heads and of probes: what they show, and that no text runs into another."""

import csv
import itertools

import pytest

from report.written import write_exhibit
from symbert.errors import DataError

HEADS = "checkpoint,size,attention,pretrain_seed,step,layer,head,symmetry,directionality,logit_std"
HEADS += ",attention_entropy,own_share"


@pytest.fixture
def anatomy_file(tmp_path):
    """Heads of some operators at steps 0, 300 and 1800, those of an operator alike but for their seed and head."""

    def make(attention=("pairwise", "original"), seeds=(1,), sizes=("tiny",)):
        lines = [HEADS]
        axes = sizes, attention, seeds, (1800, 0, 300), (1, 2), (1, 2)
        for size, name, seed, step, layer, head in itertools.product(*axes):
            symmetry = "" if name == "pairwise-identity" else 0.1 * head + step / 10_000
            facts = f"d/step-{step},{size},{name},{seed},{step},{layer},{head}"
            lines.append(f"{facts},{symmetry},0.25,{1 + 0.2 * seed},{2.5 - step / 2000},0.125")
        path = tmp_path / "anatomy.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


@pytest.fixture
def probes_file(tmp_path):
    """Operators that learn chains and partners, and `symmetric`, which learns no cycle."""

    def make(attention=("symmetric", "original")):
        lines = ["attention,relation,own_position,share,low,high,chance,steps"]
        for name, own, relation in itertools.product(attention, ("yes", "no"), ("cycle", "partner", "chain")):
            fails = name == "symmetric" and relation == "cycle"
            learned = "0,0,0.045,0.0625," if fails else "1,0.955,1,0.0625,4"
            lines.append(f"{name},{relation},{own},{learned}")
        path = tmp_path / "probes.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_means_over_heads_of_each_layer(anatomy_file, report_settings, tmp_path):
    outputs = [tmp_path / "anatomy_table.csv", tmp_path / "anatomy_table.md"]
    write_exhibit("table-anatomy", outputs, anatomy=anatomy_file(seeds=(1, 3)), settings=report_settings())
    rows = read(outputs[0])
    assert [(row["attention"], row["step"], row["layer"]) for row in rows[:3]] == [
        ("original", "0", "1"),
        ("original", "0", "2"),
        ("original", "300", "1"),
    ]
    assert [float(rows[0][key]) for key in ("symmetry", "logit_std")] == pytest.approx([0.15, 1.4])
    assert rows[-1]["attention"] == "pairwise"
    text = outputs[1].read_text()
    assert text.count("| tiny |") == 2 * 2 and "arXiv 2502.10927" in text and "2 pre-training seeds" in text


def test_the_table_of_probes_has_a_row_per_operator_and_states_chance(probes_file, tmp_path, report_settings):
    outputs = [tmp_path / "probes_table.csv", tmp_path / "probes_table.md"]
    write_exhibit("table-probes", outputs, probes=probes_file(), settings=report_settings())
    original, symmetric = read(outputs[0])
    assert (original["attention"], original["cycle"], original["steps"]) == ("original", "1.00 [0.95, 1.00]", "4.0")
    assert (symmetric["cycle"], symmetric["chain others"]) == ("0.00 [0.00, 0.04]", "1.00 [0.95, 1.00]")
    assert "Chance gives 0.06." in outputs[1].read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no csv"), ("attention,relation\noriginal,cycle\n", "no column 'own_position'")],
)
def test_another_file_is_refused_with_its_name(tmp_path, report_settings, text, message):
    path = tmp_path / "probes.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=f"probes.csv: {message}"):
        write_exhibit("table-probes", [tmp_path / "out.csv"], probes=path, settings=report_settings())
