"""The corpus stage through Snakemake, on the user's own files and on a damaged part."""

import gzip
import json
import random
import shutil
import string

import pandas
import pytest

from symbert.files import read_json
from symbert.sources import DEMO
from workflow.checkout import check_out

LETTERS = string.ascii_lowercase
PACK = {"sequence_length": 32, "validation_sequences": 8, "max_documents": 10_000, "sequences_per_shard": 64}


def text(draw: random.Random) -> str:
    """Lines long enough to deserve no quality warning."""
    words = ["".join(draw.choices(LETTERS, k=draw.randint(2, 9))) for _ in range(150)]
    return "\n".join(" ".join(words[first : first + 25]) for first in range(0, 150, 25))


@pytest.mark.usefixtures("kenlm")
def test_the_users_own_files_are_annotated_filtered_and_packed(root, tmp_path):
    """JSON lines of C4's columns and parquet of FineWeb's; UT1, KenLM and vocabulary come from the mirror."""
    draw, copy = random.Random(3), check_out(root, tmp_path / "copy")
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
    files = {"source": "files", "files": str(tmp_path / "own/**"), "filter": {"max_harmful_perplexity": 1e12}}
    config = {"glue": {"source": "embedded"}, "mirror": str(DEMO), "corpus": {"pack": PACK, **files}}
    (copy.directory / "own.yaml").write_text(json.dumps(config))
    outcome = copy.snakemake("--until", "pack", "--configfile", "own.yaml")
    assert outcome.code == 0, outcome.output[-4000:]
    corpus = copy.directory / "results/corpus"
    parts = [path for path in corpus.glob("parts-*/*.json") if path.name != "settings.json"]
    counts = {facts["read"]: facts for facts in (read_json(path)["counts"] for path in parts)}
    assert counts.keys() == {60, 9} and counts[60]["kept"] == 58 and counts[9]["kept"] == 9
    overlaps = {reason: number for reason, number in counts[60]["overlaps"].items() if number}
    assert overlaps == {"blocked_category": 1, "blocked_url": 1, "quality_warning": 1}
    assert len(list((tmp_path / "own").rglob("*.*"))) == 2, "the user's files are nobody's to remove"


def test_a_damaged_part_stops_the_run_by_name_and_leaves_nothing_half_written(root, tmp_path):
    mirror, copy = tmp_path / "mirror", check_out(root, tmp_path / "run")
    shutil.copytree(DEMO, mirror)
    part = mirror / "oscar-corpus/OSCAR-2301/en_meta/en_meta_part_1.jsonl.zst"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    settings = (
        "source=mirror",
        f"mirror={mirror}",
        "corpus={parts: 1, filter: {rules: []}}",
        "glue={source: embedded}",
    )
    outcome = copy.snakemake("--until", "prepare_part", "--config", *settings)
    assert outcome.code == 1 and "symbert prepare-part: " in outcome.output
    assert part.name in outcome.output and "sha256" in outcome.output
    left = [path.name for path in copy.directory.glob("results/corpus/parts-*/*") if path.is_file()]
    assert left == ["settings.json"]
