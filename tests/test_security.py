"""Nothing that is read runs code: no pickle, no code beside a checkpoint or data set, no name that a shell would obey.

Other gates stand with what they guard: archives in corpus/test_blocklist.py, the token in corpus/test_published.py,
campaigns/slurm/on_slurm.py, HTML and formulas of csv in report/test_formats.py, report/test_page.py
and report/test_imported.py, commits of revisions in corpus/test_published.py, pins in test_environment.py.
"""

import csv
import io
import json
import os
import pickle
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from command_lines import command_lines
from corpus.hub_site import served_hub
from glue.test_custom_files import rows_of
from model.test_export import write_checkpoint
from symbert import cli
from symbert.corpus.blocklist import Blocklist, write_blocklist
from symbert.corpus.tokens import open_array
from symbert.errors import ConfigError, IntegrityError, SymbertError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import PROJECT, read_config
from symbert.glue.train import load_classifier
from symbert.model.loading import load_model
from symbert.pretrain.tasks import verify_manifest
from symbert.sources import CORPUS_CHECKSUMS, DEMO, VOCABULARY
from workflow.checkout import Checkout

COMMANDS = "; touch ran; $(touch ran) `touch ran` & touch ran | '\"touch ran"


@dataclass
class Payload:
    """Makes the folder `ran` where it is unpickled."""

    folder: Path

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


FORMS = {  # and a reader that unpickles: else the test below could not fail
    "pickle": pickle.loads,
    "torch": lambda content: torch.load(io.BytesIO(content), weights_only=False),
    "numpy": lambda content: np.load(io.BytesIO(content), allow_pickle=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_reader_of_data_unpickles(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    FORMS[form](write_pickle(tmp_path / "file", form).read_bytes())
    (tmp_path / "ran").rmdir()
    readers = {
        "part.npy": lambda path: open_array(path, np.uint16),
        "blocklist.marisa": Blocklist,
        "manifest.json": verify_manifest,
        "scores.csv": lambda path: cli_reads(["import-scores", path, "--name", "csv"]),
        "ut1.tar.gz": lambda path: write_blocklist(path, tmp_path / "trie", tmp_path / "summary"),
        **dict.fromkeys(["task.csv", "task.parquet", "task.pkl"], rows_of),
    }
    for name, read in readers.items():
        with pytest.raises(SymbertError):
            read(write_pickle(tmp_path / name, form))
        assert not (tmp_path / "ran").exists(), name


def cli_reads(words: list[object]) -> None:
    """Run a command; SymbertError where it ends with a documented code."""
    code = cli.main([str(word) for word in words])
    assert code in (64, 65), code
    raise SymbertError


@pytest.mark.parametrize("form", ["pickle", "torch"])
def test_weights_that_are_no_safetensors_are_named_by_every_command(tmp_path, form, capsys):
    """It was believed that `export` alone meets them: `anatomy` and fine-tuning called them an internal error."""
    write_checkpoint(tmp_path / "checkpoint")
    weights = write_pickle(tmp_path / "checkpoint/model.safetensors", form)
    words = ["--checkpoint", str(weights.parent), "--output", str(tmp_path / "bert")]
    assert cli.main(["export", *words]) == 65
    assert cli.main(["anatomy", str(weights.parent)]) == 65
    with pytest.raises(IntegrityError, match=r"model\.safetensors: damaged \("):
        load_classifier(weights.parent, 2, 0.0)
    assert [f"{weights}: damaged (" in line for line in capsys.readouterr().err.splitlines()[-2:]] == [True, True]
    weights.rename(weights.with_name("pytorch_model.bin"))  # of which `anatomy` makes tensors, and nothing else
    assert cli.main(["export", *words]) == cli.main(["anatomy", str(weights.parent)]) == 65
    with pytest.raises(SymbertError, match="file not found"):
        load_classifier(weights.parent, 2, 0.0)
    assert not (weights.parent / "ran").exists()


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
    words = ["--checkpoint", str(checkpoint), "--output", str(tmp_path / "bert")]
    expected = 0 if "auto_map" in named else 64
    assert cli.main(["export", *words]) == cli.main(["anatomy", str(checkpoint)]) == expected
    with nullcontext() if expected == 0 else pytest.raises(ConfigError):
        load_model(checkpoint)
    assert not (checkpoint / "ran").exists()


# In these dry runs each $ of a free text is COMMANDS.
HOSTILE = """
hub: {source: hub, corpus: {revision: $, blocklist_url: "https://host/$"}, glue: {revision: $}}
mirror: {source: mirror, mirror: mirror$}
files:
  corpus: {source: files, files: crawl$*.jsonl, blocklist_url: "https://host/$", filter: {blocked_categories: [$]}}
  glue: {robustness: {files: ood$, sets: [hans]}}
  operators: {own: {class: "takes_text:Own", own: $}}
  tasks:
    own: {train: train$.csv, validation: dev$.csv, columns: [text$], label: label$, labels: ["0", 1$], metric: accuracy}
  sweep: {architectures: [encoder, decoder], tasks: [rte, mnli, own], attention: [original, own]}
"""


def test_no_text_of_the_configuration_or_name_of_a_file_is_a_command_for_the_shell(root, tmp_path):
    """Each command of dry runs is given to bash, with nothing for `python`."""
    shutil.copytree(DEMO, tmp_path / f"mirror{COMMANDS}")
    (tmp_path / f"ood{COMMANDS}").mkdir()
    (tmp_path / f"crawl{COMMANDS}1.jsonl").write_text('{"text": "a"}\n')
    base = "symbert.model.attention"
    text = "class Own(SharedAttention):\n    def __init__(self, config, own):\n        pass\n"
    (tmp_path / "takes_text.py").write_text(f"from {base} import SharedAttention\n\n\n{text}")
    for split in ("train", "dev"):
        with open(tmp_path / f"{split}{COMMANDS}.csv", "w", newline="") as file:
            rows = [(f"text{COMMANDS}", f"label{COMMANDS}"), (f"{split} 0", "0"), (f"{split} 1", f"1{COMMANDS}")]
            csv.writer(file).writerows(rows)
    sources = json.loads(json.dumps(yaml.safe_load(HOSTILE)).replace("$", json.dumps(COMMANDS)[1:-1]))
    for source, settings in sources.items():
        (tmp_path / f"{source}.yaml").write_text(json.dumps(settings))
    words = ["--dry-run", "--printshellcmds", "--snakefile", str(root / "Snakefile"), "--configfile"]
    script = ""
    outcomes = Checkout(tmp_path).commands(*([*words, f"{source}.yaml"] for source in sources))
    for source, planned in zip(sources, outcomes, strict=True):
        assert planned.code == 0, planned.output
        commands = re.findall(r"^Shell command: (?!None$)(.*)$", planned.output, re.M)
        assert len(commands) > 50
        hostile = any("touch ran" in command for command in commands)
        assert hostile == (source != "hub"), "the hub's texts are in settings.json"
        script += "".join(f"( {command}\n)\n" for command in commands)
        for log in re.findall(r" 2> (\S+)", "\n".join(commands)):
            (tmp_path / log).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(shutil.which("true"))
    (tmp_path / "all.sh").write_text(script)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "all.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_token_is_in_no_command_line_log_or_file_of_a_run(root, tmp_path, monkeypatch):
    """It is in the environment of each job alone, which other users cannot read; on Slurm: tests/campaigns/slurm."""
    token = f"hf_{secrets.token_hex(16)}"
    with served_hub(monkeypatch) as hub, command_lines() as seen:
        for file, body in ((VOCABULARY, b"[PAD]\n"), (CORPUS_CHECKSUMS, b"0" * 64 + b"  en_meta_part_1.jsonl.zst\n")):
            hub.add_repository(file.repo_type, file.repository)
            hub.add(file.repo_type, file.repository, file.path, body)
        vocabulary = Experiment(read_config(PROJECT, {"source": "hub"})).vocabulary.path
        words = ["--cores", "1", vocabulary, "--config", "source=hub", "experiment=x"]
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"), *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(root / "src"), "HF_TOKEN": token},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [each.headers.get("authorization") for each in hub.host.asked if VOCABULARY.repository in each.path]
    assert set(asked) == {f"Bearer {token}"}
    assert any(f"download {vocabulary}" in line for line in seen)
    assert not [line for line in seen if token in line] and token not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert Path(tmp_path, vocabulary) in files and not [path for path in files if token.encode() in path.read_bytes()]
