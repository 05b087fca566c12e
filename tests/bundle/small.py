"""A small finished experiment, written by hand: two runs on two hosts, and one task with two seeds."""

import base64
import json
from pathlib import Path

HOSTS = {"original": "gpu-node-07.cluster", "symmetric": "login"}
MIRROR = "/somewhere/private/mirror"
SETTINGS = {
    "experiment": "small-mirror",
    "scale": "small",
    "corpus_source": "mirror",
    "glue_source": "mirror",
    "recipe": "faithful",
    "tasks": ["mnli", "rte"],
    "sequence_length": 64,
    "steps": 1800,
    "batch_size": 256,
    "pretrain": {"learning_rate": 1e-4, "weight_decay": 0.5},
    "glue": {"epochs": 5, "learning_rate": 1e-5},
    "settings_hash": "abc",
    "match": "exact",
    "min_harmful_perplexity": 5.0,
    "max_harmful_perplexity": 100000.0,
    "runs": [["tiny", "original", 1], ["tiny", "symmetric", 1]],
    "scored_runs": [["tiny", "original", 1]],
}
SESSION = {
    "device": "cpu",
    "processor": "Abacus, AVX2",
    "processes": 1,
    "threads": 2,
    "precision": "fp32",
    "versions": {"torch": "2.13.0"},
    "commit": "c0ffee",
    "started": "2026-01-02T00:00:00Z",
    "until": "2026-01-02T01:30:00Z",
}


def write(path: Path, value) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def page_of(table: str) -> str:
    """A page that offers a table as data, beside a picture whose bytes happen to spell a host."""
    data = base64.b64encode(table.encode()).decode()
    picture = '<img src="data:image/png;base64,login">'
    return f'<p>a login of people</p><a href="data:text/csv;charset=utf-8;base64,{data}">csv</a>{picture}'


def record(seed: int) -> dict:
    run = {"size": "tiny", "attention": "original", "pretrain_seed": 1, "step": 1800, "task": "rte"}
    facts = {"partial": False, "stand_in": False, "settings_hash": "abc", "rows": {"train": 2490, "validation": 277}}
    return {**run, "finetune_seed": seed, "metrics": {"rte": 0.5 + seed / 100}, "majority": {"rte": 0.527}, **facts}


def make(folder: Path) -> Path:
    """Write its results into a folder, which is returned."""
    table = f"what,value\nwritten,2026-01-03 04:05:06 UTC on login\npre-training: host,{HOSTS['original']}\n"
    write(folder / "report/report.html", page_of(table))
    write(folder / "report/tables/provenance.csv", table)
    write(folder / "report/texts/summary.txt", "Two operators were compared.\nNothing was shown.\n")
    write(folder / "settings/report.json", SETTINGS)
    write(folder / "settings/filter.json", {"annotations": "published"})
    write(folder / "settings/corpus_source.json", {"source": "mirror", "root": MIRROR})
    write(folder / "corpus/blacklists.json", {"path": f"{MIRROR}/ut1/blacklists.tar.gz"})
    write(folder / "corpus/filtered/part_1.counts.json", {"read": 1200, "kept": 700})
    manifest = {"rows": {"train": 3000, "validation": 50}, "tokens": 195_200}
    write(folder / "corpus/shards/manifest.json", manifest)
    write(folder / "benchmarks/finetune/tiny-original-seed-1-step-1800.tsv", "s\tcpu_time\n7200\t3600\n")
    for attention, host in HOSTS.items():
        home, run = folder / f"pretrain/tiny-{attention}/seed-1", {"size": "tiny", "attention": attention}
        facts = {**run, "pretrain_seed": 1, "parameters": 156_780, "validation_loss": 3.25, "steps": 1800}
        write(home / "done.json", facts)
        write(home / "timing.json", {**run, "pretrain_seed": 1, **SESSION, "host": host, "sessions": 1})
        write(home / "metrics.jsonl", '{"split": "validation", "step": 1800, "loss": 3.25}\n')
        write(home / "state/resume/model.safetensors", "weights")
    write(folder / "glue/tiny-original/seed-1/step-1800/rte.json", [record(2), record(1)])
    write(folder / "logs/finetune.log", "a log")
    return folder
