"""Nothing that is read runs code: no pickle, no code beside a checkpoint or data set, no name that a shell would obey.

Other gates stand with what they guard: archives in corpus/test_blocklist.py, the token in corpus/test_hub.py and
bundle/test_archive.py, HTML and formulas of csv in report/test_formats.py, report/test_page.py and
report/foreign/test_naming.py, commits of revisions in corpus/test_hub.py, pins in test_environment.py.
"""

import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from glue.test_own_files import rows_of
from model.test_export import write_checkpoint
from pretrain.corpora import options, write_corpus
from symbert import cli
from symbert.corpus.blocklist import Blocklist
from symbert.corpus.document import open_data
from symbert.corpus.shards import hash_of_corpus
from symbert.corpus.tokens import open_array
from symbert.errors import ConfigError, IntegrityError, SymbertError
from symbert.files import sha256_of
from symbert.glue.train import load_classifier

COMMANDS = "; touch ran; $(touch ran) `touch ran` & touch ran | '\"touch ran"


class Payload:
    """Makes the folder `ran` where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder / "ran"),)


def write_pickle(path: Path, form: str = "pickle") -> Path:
    """A file that makes `ran` in its folder where it is unpickled: as pickle, torch or NumPy writes one."""
    payload = Payload(path.parent)
    with open(path, "wb") as file:
        if form == "torch":
            torch.save({"weights": payload}, file)
        elif form == "numpy":
            np.save(file, np.array([payload], dtype=object), allow_pickle=True)
        else:
            pickle.dump(payload, file)
    return path


@pytest.mark.parametrize(
    ("form", "load"),
    [
        ("pickle", pickle.loads),
        ("torch", lambda content: torch.load(io.BytesIO(content), weights_only=False)),
        ("numpy", lambda content: np.load(io.BytesIO(content), allow_pickle=True)),
    ],
)
def test_the_payload_would_run(tmp_path, form, load):
    """Else the tests below could not fail."""
    content = write_pickle(tmp_path / "file", form).read_bytes()
    assert not (tmp_path / "ran").exists()
    load(content)
    assert (tmp_path / "ran").is_dir()


@pytest.mark.parametrize("form", ["pickle", "torch", "numpy"])
def test_no_reader_of_data_unpickles(tmp_path, form):
    readers = {
        "part.npy": lambda path: open_array(path, np.uint16),
        "blocklist.marisa": Blocklist,
        "part.json": lambda path: cli_reads(["count-batch", "--records", path, "--output", tmp_path / "out"]),
        "scores.csv": lambda path: cli_reads(["import-scores", path, "--name", "csv", "--output", tmp_path / "csv"]),
        "scores.parquet": lambda path: cli_reads(["import-scores", path, "--name", "p", "--output", tmp_path / "p"]),
        "ut1.tar.gz": lambda path: cli_reads(
            ["build-blocklist", "--archive", path, "--output", tmp_path / "trie", "--summary", tmp_path / "summary"]
        ),
        "task.csv": rows_of,
        "task.parquet": rows_of,
        "task.arrow": rows_of,
        "task.pkl": rows_of,
    }
    for name, read in readers.items():
        with pytest.raises(SymbertError):
            read(write_pickle(tmp_path / name, form))
        assert not (tmp_path / "ran").exists(), name


def cli_reads(words: list[object]) -> None:
    """Run a command; SymbertError where it ends with a documented code."""
    code = cli.main([str(word) for word in words])
    assert code in (65, 66, 76), code
    raise SymbertError


@pytest.mark.parametrize("form", ["pickle", "torch", "numpy"])
def test_no_shard_is_unpickled_though_the_manifest_has_its_checksum(tmp_path, write_section, form, capsys):
    """It was believed that a checksum is proof of an array: what is none ended as an internal error."""
    manifest = write_corpus(tmp_path / "shards")
    said = json.loads(manifest.read_text())
    shard = write_pickle(tmp_path / "shards" / said["shards"][0]["file"], form)
    said["shards"][0]["sha256"] = sha256_of(shard)
    said["hash"] = hash_of_corpus({key: value for key, value in said.items() if key != "hash"})
    manifest.write_text(json.dumps(said))
    settings = write_section("pretrain", steps=10, batch_size=8, warmup_steps=5, evaluate_every=10, save_every=10)
    assert cli.main(options(manifest, settings, tmp_path / "run")) in (65, 76)
    assert shard.name in capsys.readouterr().err and not (tmp_path / "shards/ran").exists()


@pytest.mark.parametrize("form", ["pickle", "torch"])
def test_weights_that_are_no_safetensors_are_named_by_every_command(tmp_path, form, capsys):
    """It was believed that `export` alone meets them: `anatomy` and fine-tuning called them an internal error."""
    write_checkpoint(tmp_path / "checkpoint")
    weights = write_pickle(tmp_path / "checkpoint/model.safetensors", form)
    words = ["--checkpoint", str(weights.parent), "--to", "bert", "--output", str(tmp_path / "bert")]
    assert cli.main(["export", *words]) == 76
    assert cli.main(["anatomy", str(weights.parent)]) == 76
    with pytest.raises(IntegrityError, match=r"model\.safetensors: damaged \(.*; extract the checkpoint again"):
        load_classifier(weights.parent, 2, 0.0)
    assert [f"{weights}: damaged (" in line for line in capsys.readouterr().err.splitlines()[-2:]] == [True, True]
    assert not (weights.parent / "ran").exists()


def test_a_pickled_model_beside_no_safetensors_is_not_looked_for(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    write_checkpoint(checkpoint)
    (checkpoint / "model.safetensors").unlink()
    write_pickle(checkpoint / "pytorch_model.bin", "torch")
    words = ["--checkpoint", str(checkpoint), "--to", "bert", "--output", str(tmp_path / "bert")]
    assert cli.main(["export", *words]) == cli.main(["anatomy", str(checkpoint)]) == 66
    with pytest.raises(SymbertError, match="file not found"):
        load_classifier(checkpoint, 2, 0.0)
    assert not (checkpoint / "ran").exists()


@pytest.mark.usefixtures("nothing_of_ones_own")
@pytest.mark.parametrize(
    "named",
    [
        {"auto_map": {"AutoConfig": "theirs.Config", "AutoModelForMaskedLM": "theirs.Model"}},
        {"attention": "theirs", "operator": {"class": "theirs:Model"}},
        {"attention": "theirs", "operator": {"class": "subprocess:Popen", "args": ["mkdir", "ran"]}},
    ],
    ids=["auto_map", "operator", "popen"],
)
def test_no_code_that_a_checkpoint_brings_or_names_is_run(tmp_path, monkeypatch, named):
    """It was believed that every reader refuses an operator among the checkpoint's files: `export` ran it."""
    checkpoint = tmp_path / "checkpoint"
    write_checkpoint(checkpoint)
    (checkpoint / "theirs.py").write_text("import os\nos.mkdir('ran')\nclass Config: pass\nclass Model: pass\n")
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, **named}))
    monkeypatch.chdir(checkpoint)
    monkeypatch.syspath_prepend(str(checkpoint))
    words = ["--checkpoint", str(checkpoint), "--to", "bert", "--output", str(tmp_path / "bert")]
    expected = 0 if "auto_map" in named else 78
    assert cli.main(["export", *words]) == cli.main(["anatomy", str(checkpoint)]) == expected
    with nullcontext() if expected == 0 else pytest.raises(ConfigError):
        AutoModelForMaskedLM.from_pretrained(checkpoint)
    assert not (checkpoint / "ran").exists()


def test_no_script_beside_a_data_set_is_run(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "texts.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    (folder / "texts.csv").write_text("text\na\n")
    with pytest.raises(SymbertError), open_data(folder, ["text"], "correct it"):
        pass
    with open_data(folder / "texts.csv", ["text"], "correct it") as splits:
        assert [row["text"] for row in splits["train"]] == ["a"]
    assert not (tmp_path / "ran").exists()


def test_no_name_in_the_configuration_or_of_a_file_is_a_command_for_the_shell(root, tmp_path):
    """Each command of a dry run is given to bash, with nothing for `python`."""
    part = f"crawl{COMMANDS.replace('/', '')}.jsonl"
    (tmp_path / part).write_text('{"text": "a"}\n')
    rows = {split: f"{split}{COMMANDS}.csv" for split in ("train", "validation")}
    for name in rows.values():
        (tmp_path / name).write_text("text,label\na,0\nb,1\n")
    (tmp_path / "mine.yaml").write_text(
        json.dumps(
            {
                "corpus": {"source": "files", "files": "crawl*.jsonl", "revision": COMMANDS},
                "storage": {name: str(tmp_path / (name + COMMANDS)) for name in ("raw", "shards", "checkpoints")},
                "tasks": {
                    "own": {**rows, "columns": ["text"], "label": "label", "labels": ["0", "1"], "metric": "accuracy"}
                },
                "sweep": {"tasks": ["rte", "own"]},
            }
        )
    )
    words = ["--dry-run", "--printshellcmds", "--cores", "1", "--configfile", "mine.yaml"]
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"), *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    assert planned.returncode == 0, planned.stderr
    commands = re.findall(r"^Shell command: (?!None$)(.*)$", planned.stdout + planned.stderr, re.M)
    assert len(commands) > 50 and sum("touch ran" in command for command in commands) > 10
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(shutil.which("true"))
    script = "\n".join(f"( {command}\n)" for command in commands)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert not (tmp_path / "ran").exists()
