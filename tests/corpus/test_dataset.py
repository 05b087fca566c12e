"""Datasets as a corpus: what `load_dataset` finds in a folder, in files of a format, and in a repository of the hub."""

import gzip
import io
import json
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest

from corpus.hub_site import COMMIT, served_hub
from corpus.sites import closed_port, hurry
from symbert.cli import main
from symbert.configuration import merge
from symbert.corpus.dataset import Reading, rows_of
from symbert.errors import ConfigError, DataError, MissingInputError, RemoteError, SymbertError
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import outputs_of
from symbert.experiment.project import checked
from symbert.files import read_json
from symbert.sources import DEMO

ROWS = [{"body": f"The function returns value {n}.", "url": f"https://a.example/{n}", "n": n} for n in range(700)]
NAME = "someone/pages"
CARD = """---
configs:
- config_name: pages
  data_files:
  - {split: train, path: pages/train-*}
  - {split: test, path: pages/test-*}
- config_name: others
  data_files: others.parquet
---
"""


def parquet(rows: list[dict]) -> bytes:
    file = io.BytesIO()
    pd.DataFrame(rows).to_parquet(file)
    return file.getvalue()


FILES = {
    "pages/train-00001-of-00002.parquet": parquet(ROWS[350:]),
    "pages/train-00000-of-00002.parquet": parquet(ROWS[:350]),
    "pages/test-00000-of-00001.parquet": parquet(ROWS[:5]),
    "others.parquet": parquet(ROWS[5:8]),
    "README.md": CARD.encode(),
}
TRAIN = sorted(name for name in FILES if "train" in name)


@pytest.fixture
def pages(folder) -> Path:
    """A folder with a card, two configurations and two splits."""
    for name, body in FILES.items():
        file = folder / "pages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    return folder / "pages"


@pytest.fixture
def start(config, folder):
    """An experiment whose corpus is a dataset."""

    def start(path: str, corpus: dict | None = None, **keys) -> Experiment:
        dataset = {"path": path, "column": "body", **keys}
        chosen = {"source": "dataset", "dataset": dataset, "filter": {"rules": []}, **(corpus or {})}
        return Experiment(checked(merge(config, {"mirror": str(DEMO), "corpus": chosen})))

    return start


def texts_of(experiment: Experiment) -> list[str]:
    """All texts, in the order of parts."""
    return [row["text"] for file in experiment.texts.values() for row in rows_of(Path(file), experiment.dataset)]


def write(path: str, content: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)


def test_a_configuration_and_a_split_of_a_folder_are_read_as_its_card_says_a_part_per_file_in_order(start, pages):
    experiment = start("pages", name="pages")
    assert list(experiment.texts.values()) == [f"pages/{name}" for name in TRAIN]
    assert texts_of(experiment) == [row["body"] for row in ROWS]
    assert texts_of(start("pages", name="pages", split="test")) == [row["body"] for row in ROWS[:5]]
    assert texts_of(start(str(pages), name="others")) == [row["body"] for row in ROWS[5:8]]
    assert texts_of(start("pages", name="pages", data_files="pages/*1-of*")) == [row["body"] for row in ROWS[350:]]


def test_a_part_of_a_dataset_has_the_tokens_of_the_same_text_in_a_file_of_the_users_own(start, pages):
    asked = start("pages", name="pages", split="test")
    (part,) = asked.texts
    Path("own.jsonl").write_text("".join(json.dumps({"text": row["body"]}) + "\n" for row in ROWS[:5]))
    own = start("pages", {"source": "files", "files": "own.jsonl"})
    (other,) = own.texts
    for experiment in (asked, own):
        experiment.write()
        for name, text in experiment.texts.items():
            assert main(["prepare-part", text, f"{experiment.parts.folder}/{name}.npy"]) == 0
    tokens = [
        np.load(f"{folder}/{name}.npy") for folder, name in ((asked.parts.folder, part), (own.parts.folder, other))
    ]
    assert np.array_equal(*tokens) and len(tokens[0]) > 20 and asked.parts.folder != own.parts.folder
    (pages / "pages/test-00000-of-00001.parquet").write_bytes(parquet(ROWS[:6]))
    assert main(["prepare-part", asked.texts[part], f"{asked.parts.folder}/{part}.npy"]) == DataError.exit_code
    assert part not in start("pages", name="pages", split="test").texts


def test_the_options_and_types_of_a_card_are_those_of_the_reader(start):
    types = "dataset_info: {features: [{name: body, dtype: string}, {name: n, dtype: string}]}"
    write("cells/README.md", "---\nconfigs: [{config_name: default, data_files: '*.csv', sep: ';'}]\n---\n")
    write("cells/a.csv", "body;n\nfirst;1\nsecond;2\n")
    write("typed/README.md", f"---\n{types}\n---\n")
    Path("typed/[a] b.jsonl.gz").write_bytes(gzip.compress(b'{"body": 7, "n": 1}\n{"body": 8, "n": 2}\n'))
    assert texts_of(start("cells")) == ["first", "second"] and texts_of(start("typed")) == ["7", "8"]


def test_files_of_a_format_are_read_as_the_library_reads_them(start):
    write("lines/a.txt", "one\ntwo\n\nthree\n")
    write("lines/a.json", '[{"body": "one"}, {"body": "two"}]')
    assert texts_of(start("text", data_files="lines/*.txt", column="text")) == ["one", "two", "", "three"]
    assert texts_of(start("json", data_files=["lines/a.json"])) == ["one", "two"]


def test_a_split_of_save_to_disk_is_read_alone(start, folder):
    saved = {split: datasets.Dataset.from_list(rows) for split, rows in (("train", ROWS[:9]), ("test", ROWS[9:12]))}
    datasets.DatasetDict(saved).save_to_disk("saved")
    assert texts_of(start("saved", split="test")) == [row["body"] for row in ROWS[9:12]]
    assert texts_of(start("saved/train")) == [row["body"] for row in ROWS[:9]]


def test_a_dataset_that_save_to_disk_wrote_without_splits_is_not_read_in_place_of_one(start):
    datasets.Dataset.from_list([{"body": "a"}], split="test").save_to_disk("saved")
    assert texts_of(start("saved")) == texts_of(start("saved", split="test")) == ["a"]
    with pytest.raises(ConfigError, match="'corpus.dataset.split' is 'validation'; choose from train, test"):
        start("saved", split="validation")
    with pytest.raises(ConfigError, match="saved, which is read whole; leave name and data_files out"):
        start("saved", data_files="*.arrow")


def test_a_file_without_rows_is_a_part_without_documents(start):
    """It ended a job with a bug of ours."""
    write("few/a.jsonl", "")
    write("few/b.jsonl", '{"body": "one"}\n')
    assert texts_of(start("few")) == ["one"]


def test_the_hubs_dataset_is_that_of_the_commit_of_the_first_start(start, monkeypatch, folder):
    with served_hub(monkeypatch) as hub:
        hub.add_dataset(NAME, FILES)
        experiment = start(NAME, {"keep_raw": True}, name="pages")
        asked, sizes = len(hub.host.asked), {name: len(FILES[name]) for name in TRAIN}
        assert [file.split("/", 3)[-1] for file in experiment.texts.values()] == TRAIN
        assert experiment.dataset == Reading("body", "parquet", repository=NAME, commit=COMMIT)
        downloads = [output.download for output in outputs_of(experiment) if output.download]
        assert downloads == list(sizes.values()), "the plan knows their sizes"
        hub.host.bodies[hub.interface("dataset", NAME)] = b'{"id": "x", "sha": "%b"}' % (b"2" * 40)
        again = start(NAME, name="pages")
        assert again.texts == experiment.texts and again.parts.folder == experiment.parts.folder
        assert len(hub.host.asked) == asked, "nothing is asked again, so that a start needs no network"
        experiment.write()
        for file in experiment.texts.values():
            assert main(["download", file]) == 0 and Path(file).read_bytes() == FILES[file.split("/", 3)[-1]]
        assert texts_of(experiment) == [row["body"] for row in ROWS]
        name = next(iter(experiment.texts))
        assert main(["prepare-part", experiment.texts[name], f"{experiment.parts.folder}/{name}.npy"]) == 0
        settings = read_json(Path(experiment.parts.folder, "settings.json"))
        assert settings["dataset"] == {"column": "body", "format": "parquet", "repository": NAME, "commit": COMMIT}
        hub.host.bodies[hub.interface("dataset", NAME, "2" * 40)] = hub.host.bodies[
            hub.interface("dataset", NAME, COMMIT)
        ]
        for name in FILES:
            hub.host.bodies[hub.path("dataset", NAME, name, "2" * 40)] = FILES[name]
            hub.host.etags[hub.path("dataset", NAME, name, "2" * 40)] = hub.host.etags[hub.path("dataset", NAME, name)]
        other = start(NAME, name="pages", revision="2" * 40)
        assert other.parts.folder != experiment.parts.folder and not {*other.texts} & {*experiment.texts}


def test_a_repository_with_code_of_its_own_is_refused_and_the_code_is_not_even_downloaded(start, monkeypatch):
    with served_hub(monkeypatch) as hub:
        hub.add_dataset(NAME, {"pages.py": b"raise SystemExit", "a.parquet": parquet(ROWS)})
        with pytest.raises(ConfigError, match="needs code of its own, which is never run; .*refs/convert/parquet"):
            start(NAME)
        assert not any(asked.path.endswith("pages.py") for asked in hub.host.asked)


def test_a_card_of_the_hub_names_no_file_outside_of_its_repository(start, monkeypatch, folder):
    Path("secret.txt").write_text("password\n")
    with served_hub(monkeypatch) as hub:
        for path in (f"{folder}/secret.txt", f"../../..{folder}/secret.txt"):
            card = f"---\nconfigs: [{{config_name: default, data_files: '{path}'}}]\n---\n"
            hub.add_dataset(NAME, {"README.md": card.encode(), "a.txt": b"text\n", "../../b.txt": b"text\n"})
            for record in folder.glob("results/published/*/*"):
                record.unlink()
            with pytest.raises(SymbertError, match="'corpus.dataset': someone/pages: "):
                start(NAME, column="text")


def test_a_hub_that_does_not_answer_is_one_line(start, monkeypatch):
    hurry(monkeypatch, stall=1)
    with closed_port() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(RemoteError, match=rf"datasets/{NAME} at revision main: .*; check address, network"):
            start(NAME)


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"name": "pages", "split": "tset"}, ConfigError, "'corpus.dataset.split' is 'tset'; did you mean 'test'?"),
        ({"name": "page"}, ConfigError, "'corpus.dataset': pages: BuilderConfig 'page' not found. Available: .*others"),
        ({"name": None}, ConfigError, "'corpus.dataset': pages: .*pick one among the available configs.*others"),
        ({"path": "no/such/folder"}, MissingInputError, "no/such/folder: no such folder"),
        ({"path": "../not/there"}, MissingInputError, "not/there: no such folder"),
        ({"path": "./pictured"}, MissingInputError, "pictured: no such folder"),
        ({"revision": "v2"}, ConfigError, "'corpus.dataset.revision' is 'v2', which is of the hub; .*leave it out"),
        ({"path": "json", "data_files": "https://x/y.json"}, ConfigError, "https://x/y.json is no file here; download"),
        ({"path": "json"}, ConfigError, "'corpus.dataset.path' is json, a format; add .* 'data_files'"),
        ({"path": "json", "data_files": "no*.json"}, MissingInputError, "corpus.dataset.*no\\*.json"),
        ({"path": "pictures"}, ConfigError, "'corpus.dataset': pictures: is imagefolder; name files of parquet"),
    ],
)
def test_what_a_dataset_lacks_is_one_line_before_anything_runs(start, pages, keys, error, message):
    write("pictures/a.png", "")
    with pytest.raises(error, match=message):
        start(**{"path": "pages", **keys})


def test_this_folder_is_a_dataset_like_any_other(start):
    """Its path has no name, which the library asks for."""
    write("a.jsonl", '{"text": "one"}\n')
    write("below/b.jsonl", '{"text": "two"}\n')
    assert texts_of(start(".", column="text")) == ["one", "two"]
    assert texts_of(start("below/..", column="text")) == ["one", "two"]


def test_a_column_that_is_not_there_is_named_with_those_that_are(start, pages):
    experiment = start("pages", name="pages", column="text")
    with pytest.raises(
        DataError, match="pages/train-.*: no column 'text', found body, url, n; set corpus.dataset.column"
    ):
        texts_of(experiment)
    write("typed/README.md", "---\ndataset_info: {features: [{name: body, dtype: string}]}\n---\n")
    write("typed/a.jsonl", '{"body": "x"}\n')
    with pytest.raises(ConfigError, match="'corpus.dataset.column' is 'bdy'; did you mean 'body'?"):
        start("typed", column="bdy")


def test_a_card_in_a_folder_that_names_files_elsewhere_is_refused(start, folder):
    write("elsewhere/secret.txt", "password\n")
    for path in (f"{folder}/elsewhere/secret.txt", "../elsewhere/*.txt"):
        write("pages/README.md", f"---\nconfigs: [{{config_name: default, data_files: '{path}'}}]\n---\n")
        with pytest.raises(ConfigError, match="secret.txt is not one of its files; download it, and name it"):
            start("pages", column="text")


def test_a_damaged_file_of_a_dataset_is_named_and_not_skipped(start):
    write("typed/a.jsonl", '{"body": "x"}\n{"body": broken\n')
    with pytest.raises(DataError, match="typed/a.jsonl: damaged"):
        texts_of(start("typed"))
