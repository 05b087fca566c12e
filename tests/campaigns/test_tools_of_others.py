"""Others' tools read what this project writes, as docs/hub.md has it: a finished tiny experiment is exported and given
to each, installed beside the environment."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from campaigns.hub_server import hub_server
from documented import custom_files
from model.models import configured, widened
from symbert.glue.export import export
from symbert.model.bert import DecoderModel, initialize
from symbert.model.hf import copy_tokenizer, write_model
from workflow.checkout import TINY, Checkout, check_out

pytestmark = pytest.mark.tools

OLD = ("transformers==4.57.6",)
TOOLS = ("sentence-transformers==6.2.0", "peft==0.21.2", "accelerate==1.15.0", "onnx==1.23.2", "onnxruntime==1.32.0")
TOOLS += ("onnxscript==0.7.2", "duckdb==2.0.1", "roc-validator==0.13.0", "lm-eval==0.4.13")
TRACKER = ("trackio==0.43.0",)
UV = ("uv==0.13.9",)
KEPT = TINY.replace("glue: {", "glue: {keep_finetuned: true, ")


@pytest.fixture(scope="module")
def experiment(root, tmp_path_factory) -> Checkout:
    """A finished experiment with an exported encoder (bert), as it was trained (ours), and a classifier (mrpc)."""
    copy = check_out(root, tmp_path_factory.mktemp("tools") / "copy")
    for name in ("CITATION.cff", "LICENSE", "Makefile"):  # of an archive
        shutil.copy(root / name, copy.directory)
    (copy.directory / "tiny.yaml").write_text(KEPT)
    run(copy, "-m", "snakemake", "--cores", "2", "--configfile", "tiny.yaml")
    checkpoint = place(copy, "results/runs/encoder/tiny-pairwise-*/seed-1/step-20")
    scores = place(copy, "results/scores/glue-*/encoder/tiny-pairwise-*/seed-1/step-20")
    weights = scores / "finetuned/mrpc/seed-1.safetensors"
    run(copy, "-m", "symbert", "export", "--checkpoint", checkpoint, "--output", "bert")
    words = ("--checkpoint", checkpoint, "--weights", weights, "--output", "mrpc")
    run(copy, "-m", "symbert", "export-classifier", *words)
    shutil.copytree(checkpoint, copy.directory / "ours")
    return copy


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of an environment with these packages before those of this one; skips where no registry gives them."""

    def make(packages: tuple[str, ...]) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python, library = folder / "bin/python", sysconfig.get_path("purelib")
        (Path(sysconfig.get_path("purelib", vars={"base": str(folder)})) / "beside.pth").write_text(library)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *packages]
        ended = subprocess.run(install, capture_output=True, text=True)
        if ended.returncode:
            pytest.skip(f"the registry does not give it: {ended.stderr.splitlines()[-1]}")
        return python

    made: dict[tuple[str, ...], Path] = {}
    return lambda packages: made.get(packages) or made.setdefault(packages, make(packages))


def run(copy: Checkout, *words, python=sys.executable, **variables) -> str:
    """What a command of Python says on standard output, in the folder of the experiment; it may not fail."""
    environment = {**copy.environment, "PYTHONDONTWRITEBYTECODE": "1", "HF_DATASETS_OFFLINE": "1", **variables}
    command = [str(word) for word in (python, *words)]
    ended = subprocess.run(command, cwd=copy.directory, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-5000:]
    return ended.stdout


def place(copy: Checkout, pattern: str) -> Path:
    (found,) = copy.directory.glob(pattern)
    return found


READ = """
import sys, torch, transformers
from safetensors.torch import save_file
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer, pipeline
texts, found = ["The function returns a list of Café values, doesn't it?", "a value " * 60], {}
for place, auto in (("bert", AutoModelForMaskedLM), ("mrpc", AutoModelForSequenceClassification)):
    tokenizer = AutoTokenizer.from_pretrained(place)
    rows = tokenizer(texts, texts[::-1], padding=True, truncation=True, return_tensors="pt")
    model = auto.from_pretrained(place).eval()
    with torch.no_grad():
        found |= {f"{place}_logits": model(**rows).logits, f"{place}_ids": rows["input_ids"]}
save_file(found, sys.argv[1])
print(transformers.__version__)
print(pipeline("fill-mask", "bert", device="cpu")("the function [MASK] a list")[0]["sequence"])
"""


def test_transformers_4_reads_exports_as_transformers_5(experiment, installed):
    versions, texts = zip(
        run(experiment, "-c", READ, "new.safetensors").splitlines(),
        run(experiment, "-c", READ, "old.safetensors", python=installed(OLD), PYTHONPATH="").splitlines(),
        strict=True,
    )
    new, old = (load_file(experiment.directory / f"{name}.safetensors") for name in ("new", "old"))
    assert versions[1] == OLD[0].partition("==")[2] and texts[0] == texts[1]
    for name in new:
        assert new[name].shape == old[name].shape and (new[name] - old[name]).abs().max() <= 1e-5, name


SENTENCES = """
import numpy as np, symbert.model.auto, torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer
texts = ["the function returns a list", "a list is returned " * 40]
tokenizer = AutoTokenizer.from_pretrained("bert")
rows = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
attended = rows["attention_mask"][..., None]
with torch.no_grad():
    hidden = AutoModel.from_pretrained("bert")(**rows).last_hidden_state
mean = ((hidden * attended).sum(1) / attended.sum(1)).numpy()
for place in ("bert", "ours"):
    model = SentenceTransformer(place, device="cpu")
    assert model.max_seq_length == 32, "the length of the run's rows"
    assert np.abs(model.encode(texts) - mean).max() < 1e-5, place
classifier = CrossEncoder("mrpc", device="cpu")
pair = AutoTokenizer.from_pretrained("mrpc")(*texts, truncation=True, return_tensors="pt")
with torch.no_grad():
    logits = AutoModelForSequenceClassification.from_pretrained("mrpc")(**pair).logits.numpy()
assert np.abs(classifier.predict([tuple(texts)], apply_softmax=False) - logits).max() < 1e-5
"""
ADAPTER = """
import peft, symbert.model.auto, torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
rows = AutoTokenizer.from_pretrained("bert")(["a list", "a value"], padding=True, return_tensors="pt")
def outputs(model):
    with torch.no_grad():
        return model.eval()(**rows).logits
def difference(place, **settings):
    base = AutoModelForSequenceClassification.from_pretrained(place)
    tuned = peft.get_peft_model(base, peft.LoraConfig(task_type="SEQ_CLS", **settings))
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=1e-2)
    for _ in range(10):
        tuned(**rows, labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    tuned.save_pretrained("adapter")
    again = peft.PeftModel.from_pretrained(AutoModelForSequenceClassification.from_pretrained(place), "adapter")
    return (outputs(tuned) - outputs(again)).abs().max()
both = ["classifier", "pooler"]
assert difference("bert", modules_to_save=both) < 1e-5 < difference("bert"), "the pooler is in no adapter by default"
assert difference("ours", modules_to_save=both, target_modules=["query", "value"]) < 1e-5
assert difference("mrpc") < 1e-5, "it has its pooler"
"""
ONNX = """
import numpy as np, onnxruntime, torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("bert")
batches = [["the function returns a list", "a value"], ["the function returns all values", "a value", "it is"]]
batches = [tokenizer(texts, padding=True, return_tensors="pt") for texts in batches]
free = {name: {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC} for name in batches[0]}
for place, auto in (("bert", AutoModelForMaskedLM), ("mrpc", AutoModelForSequenceClassification)):
    model = auto.from_pretrained(place).eval()
    given = dict(kwargs=dict(batches[0]), input_names=list(free), output_names=["logits"], dynamic_shapes=free)
    torch.onnx.export(model, (), f"{place}.onnx", dynamo=True, verbose=False, **given)
    session = onnxruntime.InferenceSession(f"{place}.onnx", providers=["CPUExecutionProvider"])
    for batch in batches:
        (found,) = session.run(None, {name: batch[name].numpy() for name in free})
        with torch.no_grad():
            expected = model(**batch).logits.numpy()
        attended = batch["attention_mask"].numpy().astype(bool) if place == "bert" else slice(None)
        assert np.abs(found - expected)[attended].max() < 1e-4, place
"""


@pytest.mark.parametrize("script", [SENTENCES, ADAPTER, ONNX], ids=["sentence-transformers", "peft", "onnxruntime"])
def test_a_tool_computes_with_exports_what_they_compute(experiment, installed, script):
    run(experiment, "-c", script, python=installed(TOOLS))


TASK = """\
task: rte
dataset_path: json
dataset_kwargs: {data_files: {validation: rows.jsonl}}
output_type: multiple_choice
validation_split: validation
doc_to_text: "{{sentence1}} {{sentence2}} True or False?"
doc_to_target: label
doc_to_choice: ["True", "False"]
metric_list: [{metric: acc}]
"""


HARNESS = """
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import AutoModelForCausalLM, BertTokenizer
tokenizer = BertTokenizer.from_pretrained("decoder")
first = tokenizer.cls_token_id
words = ["a", "of", "in"]
questions = [Instance("loglikelihood", {}, ("the list is", f" {word}"), 0) for word in words]
def scores(**settings):
    model = HFLM(pretrained="decoder", device="cpu", prefix_token_id=first, **settings)
    return [score for score, _ in model.loglikelihood(questions)]
assert len(set(scores())) == 1, "the first piece of each answer is lost"
with torch.no_grad():
    ids = tokenizer("the list is", add_special_tokens=False, return_tensors="pt").input_ids
    logits = AutoModelForCausalLM.from_pretrained("decoder")(ids).logits[0, -1].log_softmax(-1)
expected = [float(logits[tokenizer.convert_tokens_to_ids(word)]) for word in words]
torch.testing.assert_close(scores(add_bos_token=False), expected, rtol=0, atol=1e-4)
"""


def test_the_harness_scores_decoders_as_documented(experiment, installed):
    folder = experiment.directory
    vocabulary = len((folder / "ours/vocab.txt").read_text().splitlines())
    model = DecoderModel(configured("tiny", "pairwise", vocabulary))
    initialize(model, 1)
    write_model(widened(model, 0.1), folder / "trained")
    copy_tokenizer(folder / "ours", folder / "trained")
    export(folder / "trained", folder / "decoder")
    run(experiment, "-c", HARNESS, python=installed(TOOLS))


def test_scores_of_the_harness_for_a_masked_model_are_told_when_they_are_converted(experiment, installed, root):
    folder = experiment.directory
    (folder / "rte.yaml").write_text(TASK)
    rows = [{"sentence1": f"a list {number}", "sentence2": "it is a list", "label": number % 2} for number in range(8)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--model_args", "pretrained=bert,prefix_token_id=2", "--tasks", "rte", "--include_path", ".")
    python = installed(TOOLS)
    run(experiment, "-m", "lm_eval", "--model", "hf", *words, "--device", "cpu", "--output_path", "out", python=python)
    (results,) = folder.glob("out/**/results*.json")
    command = [sys.executable, root / "tools/convert_harness.py", results]
    converted = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ",rte,1,accuracy," in converted.stdout and "masked model" in converted.stderr


KINDS = {"BIGINT": "number", "DOUBLE": "number", "VARCHAR": "text", "BOOLEAN": "truth"}
KINDS |= {"numeric": "number", "character": "text", "logical": "truth", "bool": "truth", "str": "text"}
DUCKDB = """
import duckdb, json, sys
columns = duckdb.execute(f"describe select * from '{sys.argv[1]}'").fetchall()
print(json.dumps({name: kind for name, kind, *_ in columns}))
"""
READR = "d <- readr::read_csv(commandArgs(TRUE)[1], show_col_types = FALSE); stopifnot(nrow(readr::problems(d)) == 0); "
READR += 'cat(paste(names(d), sapply(d, function(x) class(x)[1])), sep = "\\n")'


def test_r_and_duckdb_read_the_data_with_the_types_of_pandas(experiment, installed):
    files = sorted(experiment.directory.glob("results/demo-embedded/report/data/*.csv"))
    assert len(files) > 4
    for file in files:
        table = pd.read_csv(file)
        told = {name: "number" if kind.kind in "iuf" else KINDS[str(kind)] for name, kind in table.dtypes.items()}
        told = {name: kind for name, kind in told.items() if table[name].notna().any()}
        found = [json.loads(run(experiment, "-c", DUCKDB, file, python=installed(TOOLS)))]
        if shutil.which("Rscript"):
            lines = run(experiment, "-e", READR, file, python="Rscript").splitlines()
            found.append(dict(line.split(" ") for line in lines))
        for types in found:
            assert {name: KINDS[kind] for name, kind in types.items() if name in told} == told, file.name


# Without a network the context comes from the package rocrate, whose newer one moved Bioschemas' terms.
VALIDATE = """
import email.message, io, pathlib, sys, urllib.response
import rdflib._networking, rocrate
context = (pathlib.Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_bytes()
context = context.replace(b"bioschemas.org/terms/", b"bioschemas.org/")
def urlopen(request):
    headers = email.message.Message()
    headers["Content-Type"] = "application/ld+json"
    return urllib.response.addinfourl(io.BytesIO(context), headers, request.full_url, 200)
rdflib._networking.urlopen = urlopen
from rocrate_validator.cli import cli
cli()
"""


def test_the_validator_of_crates_accepts_an_archive(experiment, installed):
    folder = experiment.directory
    run(experiment, "-m", "symbert", "bundle", "demo-embedded", "--output", "demo.zip")
    shutil.unpack_archive(folder / "demo.zip", folder / "crate")
    words = [
        "-y",
        "validate",
        "-p",
        "workflow-ro-crate-1.0",
        "-l",
        "recommended",
        "-f",
        "json",
        "-o",
        "told.json",
        "crate",
    ]
    subprocess.run([installed(TOOLS), "-c", VALIDATE, *words], cwd=folder, capture_output=True)
    issues = json.loads((folder / "told.json").read_text())["issues"]
    of_crate = [issue for issue in issues if "/context" not in issue["message"]]
    assert [issue["message"] for issue in of_crate if issue["severity"] == "REQUIRED"] == []
    assert len(of_crate) == 2, "an address of the authors, and Bioschemas' profile"


def test_the_documented_tracker_gives_trackio_all_lines_of_a_run(experiment, installed, root, tmp_path):
    (experiment.directory / "my_trackio.py").write_text(custom_files(root, "docs/pretraining.md")["my_trackio.py"])
    metrics = place(experiment, "results/runs/encoder/tiny-pairwise-*/seed-1/metrics.jsonl")
    script = """
import json, pathlib, sys
import my_trackio
file = pathlib.Path(sys.argv[1])
write = my_trackio.track(file.parent)
for line in map(json.loads, file.read_text().splitlines()):
    write(line.pop("split"), line.pop("step"), line)
"""
    run(experiment, "-c", script, metrics, python=installed(TRACKER), TRACKIO_DIR=str(tmp_path), PYTHONPATH=".")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    with sqlite3.connect(tmp_path / "symbert.db") as kept:
        found = [(step, *json.loads(values)) for step, values in kept.execute("select step, metrics from metrics")]
    told = [
        (line["step"], *(f"{line['split']}/{name}" for name in line if name not in ("split", "step"))) for line in lines
    ]
    assert sorted(found) == sorted(told) and len(found) > 5


def test_steps_are_uploaded_as_revisions_and_loaded_again(experiment, root, tmp_path):
    script = custom_files(root, "docs/hub.md")["upload.sh"]
    (experiment.directory / "upload.sh").write_text(
        script.replace("OWNER/NAME", "me/tiny").replace("200 400", "10 15 20")
    )
    load = """
import sys, torch
from transformers import AutoModelForMaskedLM
for revision in ("step-10", "step-15", "step-20", "main"):
    model = AutoModelForMaskedLM.from_pretrained("me/tiny", revision=revision)
    print(model.config.pretraining["step"], float(model.bert.embeddings.word_embeddings.weight.sum()))
"""
    with hub_server() as (address, repositories):
        online = {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_canary", "HF_HOME": str(tmp_path)}
        online |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        run(experiment, "upload.sh", python="bash", **online)
        loaded = [line.split() for line in run(experiment, "-c", load, **online).splitlines()]
    assert [step for step, _ in loaded] == ["10", "15", "20", "20"]
    assert len({total for _, total in loaded}) == 3 and loaded[2] == loaded[3]
    assert {*repositories["me/tiny"]} == {"main", "step-10", "step-15", "step-20"}


def test_uv_finds_the_packages_of_the_pinned_environment(installed, root, tmp_path):
    uv = installed(UV).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    command = [uv, "pip", "install", "--dry-run", "--python", tmp_path / "venv", "-e", root, "-c"]
    told = subprocess.run([*command, root / "envs/constraints.txt"], capture_output=True, text=True)
    assert told.returncode == 0 and "torch==" in told.stderr, told.stderr[-2000:]
