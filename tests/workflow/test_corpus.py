"""The corpus stage through Snakemake on small published files: any dealing of the work gives the same bytes."""

import gzip
import hashlib
import json
import random
import re
import shutil
import string
from pathlib import Path

import pandas
import pytest

from corpus.oscar import record, write_part
from symbert.config import merge
from symbert.files import sha256_of
from symbert.sources import DEMO
from workflow.checkout import Checkout, check_out

PARTS, DOCUMENTS = 5, 40
# No letter both begins and continues a word, so that no code point is compared and tokenizers gives all ids.
FIRST, NEXT = string.ascii_lowercase[:13] + string.digits + ".", string.ascii_lowercase[13:]
# A model of harmful text to which every word is as likely as another: a perplexity of 10.
ARPA = """\\data\\
ngram 1=3
ngram 2=1

\\1-grams:
-99\t<s>\t0
-1\t</s>
-1\t<unk>

\\2-grams:
-1\t<s> </s>

\\end\\
"""
PACK = {"sequence_length": 32, "validation_sequences": 8, "max_documents": 10_000, "sequences_per_shard": 64}


def text(draw: random.Random) -> str:
    """Lines long enough to deserve no quality warning."""
    words = [draw.choice(FIRST[:13]) + "".join(draw.choices(NEXT, k=draw.randint(1, 8))) for _ in range(150)]
    return "\n".join(" ".join(words[first : first + 25]) for first in range(0, 150, 25))


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A mirror of five small parts, two fifths of whose documents are dropped."""
    root = tmp_path_factory.mktemp("mirror")
    draw = random.Random(7)
    english = root / "oscar-corpus/OSCAR-2301/en_meta"
    english.mkdir(parents=True)
    lines = []
    for part in range(1, PARTS + 1):
        values = [{"harmful_pp": None}, {"quality_warnings": ["tiny"]}, {}, {}, {}]
        records = [record(text(draw), number=100 * part + number, **values[number % 5]) for number in range(DOCUMENTS)]
        path = write_part(english / f"en_meta_part_{part}.jsonl.zst", records)
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    (english / "checksum.sha256").write_text("".join(lines))
    shutil.copytree(DEMO / "ut1", root / "ut1")
    vocabulary = root / "google-bert/bert-base-uncased/vocab.txt"
    vocabulary.parent.mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FIRST, *(f"##{letter}" for letter in NEXT)]
    vocabulary.write_text("".join(piece + "\n" for piece in pieces))
    (root / "oscar-corpus/harmful-kenlms").mkdir()
    (root / "oscar-corpus/harmful-kenlms/en.arpa").write_text(ARPA)
    return root


@pytest.fixture
def run(root, tmp_path):
    """Runs the corpus stage in a checkout of its own; gives its folder of results and what was said."""

    def run(name: str, corpus: dict, *arguments: str, code: int = 0, **config) -> tuple[Path, str]:
        directory = tmp_path / name
        copy = Checkout(directory) if directory.exists() else check_out(root, directory)
        values = {"experiment": "x", **config, "corpus": merge({"parts": PARTS, "pack": PACK}, corpus)}
        (directory / "own.yaml").write_text(json.dumps(values))
        outcome = copy.snakemake("corpus", *arguments, "--configfile", "own.yaml")
        assert outcome.code == code, outcome.output[-4000:]
        return directory / "results/x/corpus", outcome.output + outcome.log

    return run


def shards(results: Path) -> dict[str, bytes]:
    """What pack-shards wrote, by name."""
    return {path.name: path.read_bytes() for path in sorted((results / "shards").iterdir())}


@pytest.mark.campaign
def test_shards_have_the_same_bytes_for_any_number_of_workers_and_any_batches(run, published):
    mirror = {"source": "mirror", "mirror": str(published)}
    one, _ = run("one", {"parts_per_batch": 10}, "--cores", "1", **mirror)
    two, _ = run("two", {"parts_per_batch": 1}, **mirror)
    assert shards(one) == shards(two)
    assert len(json.loads((one / "shards/manifest.json").read_text())["parts"]) == PARTS
    assert not (one / "batches").exists()
    assert sorted(path.name for path in (two / "batches").iterdir()) == ["0.json", "1.json", "2.json"]
    assert not list((two / "raw").glob("*.zst")), "raw parts are temporary"


@pytest.mark.campaign
def test_a_full_corpus_reads_no_further_part_and_a_larger_one_says_what_to_make_again(run, published):
    """24 documents of each part are kept; two parts fill 40, which is known when the fourth part is due."""
    mirror = {"source": "mirror", "mirror": str(published)}
    results, _ = run("copy", {"parts_per_batch": 1, "pack": {"max_documents": 40}}, **mirror)
    taken = {
        path.name.split(".")[0]: json.loads(path.read_text())["taken"]
        for path in (results / "filtered").glob("*.counts.json")
    }
    assert taken == {f"en_meta_part_{part}": part <= 3 for part in range(1, PARTS + 1)}
    first = shards(results)
    whole, _ = run("whole", {"parts_per_batch": 10, "pack": {"max_documents": 40}}, **mirror)
    assert shards(whole)["train-00000.npy"] == first["train-00000.npy"], "what was left out was beyond the limit"

    larger = {"parts_per_batch": 1, "pack": {"max_documents": 100}}
    _, output = run("copy", larger, code=1, **mirror)
    assert "are needed now: en_meta_part_4, en_meta_part_5; delete" in output, output[-2000:]
    for path in (results / "filtered").glob("en_meta_part_[45].*"):
        path.unlink()
    _, output = run("copy", larger, **mirror)
    assert re.search(r"^filter_part +2$", output, re.M), "only the parts that were left out are read"
    assert sum(json.loads((results / "shards/manifest.json").read_text())["documents"].values()) == 100


def test_the_users_own_files_are_annotated_filtered_and_packed(run, published, tmp_path):
    """JSON lines of C4's columns and parquet of FineWeb's; UT1, KenLM and vocabulary come from the mirror."""
    draw = random.Random(3)
    (tmp_path / "own/2023").mkdir(parents=True)
    rows = [{"text": text(draw), "url": f"https://good.example/{number}"} for number in range(60)]
    rows[0]["url"] = "https://phishing.example/login"
    rows[1]["text"] = "Too short."
    with gzip.open(tmp_path / "own/2023/c4.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    fineweb = [
        {"text": text(draw), "id": f"<urn:uuid:{number}>", "url": "https://good.example/"} for number in range(9)
    ]
    pandas.DataFrame(fineweb).to_parquet(tmp_path / "own/fineweb.parquet")
    files = {"source": "files", "files": str(tmp_path / "own/**")}
    results, _ = run("copy", {**files, "filter": {"max_harmful_perplexity": 1e12}}, mirror=str(published))
    counts = json.loads((results / "filtered/2023-c4.counts.json").read_text())
    assert (counts["read"], counts["kept"]) == (60, 58)
    assert {reason: number for reason, number in counts["overlaps"].items() if number} == {
        "blocked_category": 1,
        "blocked_url": 1,
        "quality_warning": 1,
    }
    kept = pandas.read_parquet(results / "filtered/fineweb.parquet")
    assert kept["id"].tolist() == [row["id"] for row in fineweb]
    assert kept["text"].tolist() == [row["text"] for row in fineweb]
    digests = {str(path): sha256_of(path) for path in (tmp_path / "own").rglob("*.*")}
    assert json.loads((results / "sources.json").read_text())["files"] == digests
    assert len(digests) == 2, "the user's files are nobody's to remove"


@pytest.mark.campaign
def test_text_that_oscars_filters_would_drop_is_kept_on_request(run, published, tmp_path):
    """Short texts without URL; no UT1 archive and no model are asked for, and the report has no table of them."""
    shutil.copytree(published, tmp_path / "mirror")
    shutil.rmtree(tmp_path / "mirror/ut1")
    shutil.rmtree(tmp_path / "mirror/oscar-corpus/harmful-kenlms")
    draw = random.Random(5)
    lines = [json.dumps({"text": text(draw).replace("\n", " ")}) + "\n" for _ in range(30)]
    (tmp_path / "own.jsonl").write_text("".join(lines))
    files = {"source": "files", "files": str(tmp_path / "own.jsonl")}
    _, output = run("dropped", files, mirror=str(published), code=1)
    assert re.search(r"0 of 30 documents were kept \((\w+ \d+, )*quality_warning \d+\), symbert filter-part", output)
    results, _ = run("copy", files, "--config", "corpus={filter: none}", mirror=str(tmp_path / "mirror"))
    counts = json.loads((results / "filtered/own.counts.json").read_text())
    assert (counts["read"], counts["kept"], counts["without_url"]) == (30, 30, 30)
    tables = results.parent / "report/tables"
    assert (tables / "corpus.csv").is_file()
