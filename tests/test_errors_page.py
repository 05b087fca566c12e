"""docs/errors.md: it has every error class with its exit code, and each of its messages is provoked here."""

import errno
import inspect
import json
import math
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import sites
from corpus.hub_site import HubSite, served_hub
from corpus.test_blocklist import write_archive
from pretrain.corpora import options, write_corpus, write_vocabulary
from pretrain.parallel import settings_of
from symbert import cli, errors
from symbert.blimp import PARADIGMS
from symbert.corpus.sources import CORPUS_CHECKSUMS, VOCABULARY
from symbert.errors import SymbertError
from symbert.files import single_writer
from symbert.model.configuration import configuration_of
from symbert.model.decoder import DecoderModel
from symbert.model.weights import write_weights

PAGE = Path(__file__).parents[1] / "docs/errors.md"
SECTIONS = {  # by exit code: the names of the classes, and what is written beneath
    int(code): (names.split(", "), text)
    for code, names, text in re.findall(r"^## (\d+) (.+)\n((?:(?!## ).*\n)*)", PAGE.read_text("utf-8"), re.M)
}
KINDS = [
    (code, message) for code, (_, text) in SECTIONS.items() for message in re.findall(r"^\| `(.+?)` \|", text, re.M)
]


@dataclass
class Place:
    """Where a command is to fail: an empty project in a folder of its own."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    write_section: Callable[..., Path]
    held: ExitStack  # what lasts until the command has ended

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def hub(self) -> HubSite:
        """A hub in small, with an empty repository of the vocabulary."""
        hub = self.held.enter_context(served_hub(self.monkeypatch))
        hub.add_repository("model", VOCABULARY.repository)
        return hub


@pytest.fixture
def place(project, monkeypatch, write_section, nothing_of_ones_own):
    """An empty project."""
    with ExitStack() as held:
        yield Place(project, monkeypatch, write_section, held)


PROVOKED: dict[str, Callable[[Place], list[object]]] = {}


def provokes(message: str) -> Callable[[Callable], Callable]:
    """Register what prepares a failure with this message of the page and gives the words of the command."""

    def register(prepare: Callable[[Place], list[object]]) -> Callable:
        assert message not in PROVOKED, f"provoked twice: {message}"
        PROVOKED[message] = prepare
        return prepare

    return register


def test_every_error_class_is_on_the_page_with_its_exit_code_and_its_meaning():
    defined = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SymbertError)]
    assert {(kind.exit_code, kind.__name__) for kind in defined} == {
        (code, name) for code, (names, _) in SECTIONS.items() for name in names
    }
    for kind in defined:
        if kind is not SymbertError:
            meaning = inspect.getdoc(kind).replace("\n", " ")
            assert f"\n{meaning}\n" in SECTIONS[kind.exit_code][1], kind.__name__
    assert list(SECTIONS) == sorted(SECTIONS)


def test_every_message_of_the_page_is_provoked_and_no_other():
    assert sorted(message for _, message in KINDS) == sorted(PROVOKED)
    assert {code for code, _ in KINDS} == set(SECTIONS), "a section without a message"


@pytest.mark.parametrize(("code", "message"), KINDS, ids=[f"{code}-{message}" for code, message in KINDS])
def test_a_message_comes_with_the_exit_code_of_its_section(code, message, place, capsys):
    words = [str(word) for word in PROVOKED[message](place)]
    capsys.readouterr()
    try:
        ended = cli.main(words)
    except SystemExit as stop:  # argparse's
        ended = stop.code
    place.monkeypatch.undo()
    said = capsys.readouterr().err.splitlines()
    assert ended == code, said
    pattern = ".*".join(map(re.escape, message.split("…")))
    assert [bool(re.match(rf"symbert( [\w-]+)?: .*{pattern}", line)) for line in said].count(True) == 1, said
    assert said[-1].startswith("symbert"), said


def calls_refused(number: int) -> Callable[..., None]:
    """A call of the system that fails so."""

    def refuse(*arguments, **named):
        raise OSError(number, os.strerror(number))

    return refuse


def written(place: Place) -> list[object]:
    """A command that publishes a small file."""
    return ["write-settings", "--values", "{}", "--output", place.folder / "out.json"]


def trained(place: Place, **changes: object) -> list[object]:
    """A command that trains a tiny model for ten steps into the folder `run`."""
    values = {"steps": 10, "batch_size": 8, "warmup_steps": 5, "evaluate_every": 10, "save_every": 10, **changes}
    settings = place.write_section("pretrain", **values)
    return options(write_corpus(place.folder / "shards"), settings, place.folder / "run")


def resolved(place: Place, repository: str, **changes: object) -> list[object]:
    """A command that asks the hub for the commit of a repository."""
    settings = place.write_section("corpus_source", **{"source": "hub", "root": None, "revision": "main", **changes})
    return ["resolve-corpus", "--settings", settings, "--repositories", repository, "--output", place.folder / "out"]


def decoder(place: Place, bias: float = 0.0, **changes: object) -> Path:
    """A checkpoint of an untrained decoder of nine word pieces, with this number added to the logit of one."""
    config = configuration_of("tiny", "original", vocabulary_size=9)
    vars(config).update(changes)
    model, folder = DecoderModel(config), place.folder / "made"
    model.cls["predictions"].bias.data[5] += bias
    write_weights(model, folder / "model.safetensors")
    place.write("made/config.json", json.dumps(model.config.to_dict()))
    return folder


def judged(place: Place, checkpoint: Path, **changes: object) -> list[object]:
    """A command that judges a pair of each paradigm of BLiMP by a decoder with these pieces."""
    vocabulary, raw = place.folder / "vocab.txt", place.folder / "pairs.parquet"
    write_vocabulary(vocabulary, 9)
    pairs = [{"paradigm": name, "sentence_good": "w0 w1", "sentence_bad": "w1 w0"} for name in PARADIGMS]
    pq.write_table(pa.Table.from_pylist(pairs), raw)
    values = {"checkpoint": checkpoint, "raw": raw, "vocabulary": vocabulary, "size": "tiny", "attention": "original"}
    values |= {"settings": place.write_section("blimp", allow_partial=True), "pretrain-seed": 1, "step": 0}
    values |= {"output": place.folder / "record.json", "threads": 1, "host": "decoder", **changes}
    return ["measure-blimp", *(word for name, value in values.items() for word in (f"--{name}", value))]


def listed(place: Place, archive: Path) -> list[object]:
    """A command that reads an archive of UT1."""
    return ["build-blocklist", "--archive", archive, "--output", place.folder / "trie", "--summary", place.folder / "s"]


@provokes("…: … of … checks failed: …")
def _(place):
    from symbert.model import check

    place.monkeypatch.setattr(check, "CHECKS", {name: check.CHECKS[name] for name in ("start", "parameters")})
    return ["check-operator", "model.wrong_operators:Miscounted"]


@provokes("the following arguments are required: …")
def _(place):
    return ["write-settings"]


@provokes("invalid choice: …")
def _(place):
    return ["filter-prat"]


@provokes("--arguments …: not JSON …; write …")
def _(place):
    return ["check-operator", "model.wrong_operators:Demanding", "--arguments", "{rank: 7}"]


@provokes("--config …: no value; write key=value")
def _(place):
    return ["plan", "--config", "parts"]


@provokes("pretrain-model: no host '…'; choose from …")
def _(place):
    run = place.folder / "run"
    return options(run / "manifest.json", place.write_section("pretrain"), run, host="radio")


@provokes("extract-checkpoint: a model of the host … reads word pieces; give --vocabulary")
def _(place):
    config = {**configuration_of("tiny", "original").to_dict(), "architectures": ["DecoderModel"]}
    place.folder.joinpath("state").mkdir()
    place.write("state/config.json", json.dumps(config))
    facts = {"size": "tiny", "attention": "original", "pretrain_seed": 1, "parameters": 1, "model_host": "decoder"}
    done = place.write("done.json", json.dumps(facts))
    words = ["--state", place.folder / "state", "--step", 0, "--done", done, "--output", place.folder / "step-0"]
    return ["extract-checkpoint", *words]


@provokes("--to is …, which no … becomes; give --to …")
def _(place):
    return ["export", "--checkpoint", decoder(place), "--to", "vit", "--output", place.folder / "vit"]


@provokes("pretrain-model: a model of the host … is trained on packed rows; give --manifest")
def _(place):
    run = place.folder / "run"
    command, *words = options(run / "manifest.json", place.write_section("pretrain"), run, host="decoder")
    return [command, *words[2:]]  # without --manifest, which is the first


@provokes("exhibit: no '…'; choose from …")
def _(place):
    return ["exhibit", "table-9", "--output", place.folder / "t.csv"]


@provokes("…: not JSON …; …")
def _(place):
    return ["count-batch", "--records", place.write("a.json", '{"documents": '), "--output", place.folder / "out"]


@provokes("…: not YAML …; correct it")
def _(place):
    return ["plan", "--configfile", place.write("mine.yaml", "pretrain: {steps: [")]


@provokes("…: damaged archive …; download it again")
def _(place):
    whole = write_archive(place.folder / "ut1.tar.gz", {"blacklists/a/domains": "bad.example"}).read_bytes()
    return listed(place, place.write("ut1.tar.gz", whole[:-10]))


@provokes("…: member … leaves the archive; get the archive from its publisher")
def _(place):
    return listed(place, write_archive(place.folder / "ut1.tar.gz", {"blacklists/../../a": "x"}))


@provokes("…: not UTF-8 …; get the file again")
def _(place):
    vocabulary = place.write("vocab.txt", b"[PAD]\n\xff\xfe\n")
    outputs = {"documents": "d", "output": "o", "offsets": "f", "record": "r"}
    return ["tokenize-part", "--vocabulary", vocabulary, *(word for key in outputs for word in (f"--{key}", key))]


@provokes("…: no column 'model' or 'operator'; add one")
def _(place):
    scores = place.write("theirs.csv", "task,score,finetune_seed\nrte,0.6,1\n")
    return ["import-scores", scores, "--name", "theirs"]


@provokes("…: the … '…' is a formula for a spreadsheet; begin it with a letter")
def _(place):
    scores = place.write("theirs.csv", "task,score,finetune_seed,model\nrte,0.6,1,=1+1\n")
    return ["import-scores", scores, "--name", "theirs"]


@provokes("…: file not found")
def _(place):
    return ["count-batch", "--records", "none.json", "--output", place.folder / "out"]


@provokes("…: file not found; run …")
def _(place):
    return listed(place, place.folder / "none.tar.gz")


@provokes("…: Is a directory; correct the path")
def _(place):
    return ["count-batch", "--records", place.folder, "--output", place.folder / "out"]


@provokes("…: Permission denied; make it readable")
def _(place):
    record = place.write("a.json", "{}")
    place.monkeypatch.setattr(Path, "read_bytes", calls_refused(errno.EACCES))  # root may read what others may not
    place.monkeypatch.setattr(Path, "read_text", calls_refused(errno.EACCES))
    place.monkeypatch.setattr("builtins.open", calls_refused(errno.EACCES))
    return ["count-batch", "--records", record, "--output", place.folder / "out"]


def parallel(place: Place, **contents: str | bytes) -> str:
    """A value of `parallel`, whose files have these contents."""
    for name, content in contents.items():
        place.write(name, content)
    return "{source: source, target: target, validation_source: source, validation_target: target, vocabulary_size: 20}"


def packed(place: Place, source: str | bytes, target: str | bytes) -> list[object]:
    """The command that packs a text, which is held out, too."""
    parallel(place, source=source, target=target)
    files = {"source": "source", "target": "target", "validation_source": "source", "validation_target": "target"}
    return [
        "pack-pairs",
        "--settings",
        settings_of(files, place.folder / "parallel.json"),
        "--output",
        place.folder / "pairs",
    ]


@provokes("…: line …: not UTF-8; convert the file to UTF-8")
def _(place):
    return packed(place, "A cat.\n", b"K\xe4se.\n")


@provokes("…: … lines, but … has …; make each line the translation of the other's")
def _(place):
    return packed(place, "A cat.\nA dog.\n", "Ein Kater.\n")


@provokes("…: is empty; give it a line for each sentence")
def _(place):
    return packed(place, "A cat.\n", "")


@provokes("…: none of its … pairs with … is left (…); …")
def _(place):
    return packed(place, "A cat.\n", "\n")


@provokes("config: 'parallel.vocabulary_size' is …, but the letters of the text alone are … pieces; raise it")
def _(place):
    words = packed(place, "The five boxing wizards jump quickly.\n", "Zwei.\n")
    settings = json.loads(words[2].read_text())
    words[2].write_text(json.dumps({**settings, "vocabulary_size": 20}))
    return words


ROPE = "{num_hidden_layers: 1, hidden_size: 8, num_attention_heads: %d, intermediate_size: 8, "
ROPE += "position_embedding_type: rotary}"


@provokes("config: 'sizes.…': a head has … numbers, which rotary positions take in pairs; …")
def _(place):
    return ["plan", "--config", f"sizes={{rope: {ROPE % 8}}}"]


@provokes("config: …, which does not know the rotary positions of the size …; leave one of them out")
def _(place):
    sweep = "sweep={sizes: [rope], hosts: [vision], curve: {sizes: []}}"
    return ["plan", "--config", f"sizes={{rope: {ROPE % 2}}}", sweep]


@provokes("config: 'position_embedding_type' is rotary, which … does not know; …")
def _(place):
    made = decoder(place, position_embedding_type="rotary")
    return ["export", "--checkpoint", made, "--to", "bert", "--output", place.folder / "bert"]


@provokes("config: 'sweep.hosts' has …, but 'parallel' names no text; …")
def _(place):
    return ["plan", "--config", "sweep={hosts: [translation]}"]


@provokes("config: 'parallel' names text, but 'sweep.hosts' has no …; add it there")
def _(place):
    return ["plan", "--config", f"parallel={parallel(place, source='A.', target='B.')}"]


@provokes("config: '…': no directory …; give …")
def _(place):
    return ["plan", "--config", "source=mirror", "mirror=nowhere"]


@provokes("config: 'parallel.…': no file …; correct it")
def _(place):
    return ["plan", "--config", "sweep={hosts: [translation]}", f"parallel={parallel(place)}"]


@provokes("…: HTTP 404; …")
def _(place):
    place.hub()
    return resolved(place, CORPUS_CHECKSUMS.repository)


@provokes("…: step … was not kept; the nearest kept steps: …")
def _(place):
    words = {"state": place.folder, "step": 1, "vocabulary": "v", "done": "d", "corpus-source": "embedded"}
    options = [word for key, value in words.items() for word in (f"--{key}", value)]
    return ["extract-checkpoint", *options, "--output", place.folder / "out"]


@provokes("…: … attempts in a row); check the network and run again")
def _(place):
    place.monkeypatch.setattr("time.sleep", lambda seconds: None)
    place.monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # where nobody answers
    return resolved(place, VOCABULARY.repository)


@provokes("…: HTTP …; check the address")
def _(place):
    hub = place.hub()
    hub.host.fail(hub.interface("model", VOCABULARY.repository), sites.status(400), always=True)
    return resolved(place, VOCABULARY.repository)


@provokes("…: HF_HUB_OFFLINE is set; unset it, or give a commit as the revision")
def _(place):
    place.monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return resolved(place, VOCABULARY.repository)


@provokes("internal error: …: … (run with --debug for the traceback)")
def _(place):
    place.monkeypatch.setattr("symbert.config.write_json", lambda *file: 1 / 0)
    return written(place)


@provokes("…: out of memory with … sequences at a time; set 'pretrain.micro_batch_size' below that …")
def _(place):
    def exhaust(*batch):
        raise MemoryError

    place.monkeypatch.setattr("symbert.pretrain.train.Trainer._loss_of", exhaust)
    return trained(place)


@provokes("config: … needs … on each GPU with … sequences at a time, and one has …; set …")
def _(place):
    place.monkeypatch.setattr("symbert.experiment.plan.count_jobs", lambda *options: (Counter(), Counter()))
    large = ["sweep={sizes: [small], curve: {sizes: []}}", "pretrain={batch_size: 4096}"]
    return ["plan", "--config", *large, "rates={gpu_memory: 2}"]


@provokes("…: Cannot allocate memory; run where there is more memory")
def _(place):
    place.monkeypatch.setattr("os.fsync", calls_refused(errno.ENOMEM))
    return written(place)


@provokes("…: Permission denied; make the directory writable or choose another")
def _(place):
    place.monkeypatch.setattr("os.replace", calls_refused(errno.EACCES))
    return written(place)


@provokes("…: Read-only file system; make the directory writable or choose another")
def _(place):
    place.monkeypatch.setattr("os.replace", calls_refused(errno.EROFS))
    return written(place)


@provokes("…: File exists; choose another place for it")
def _(place):
    return ["write-settings", "--values", "{}", "--output", place.write("file", "") / "out.json"]


@provokes("…: File exists; choose another file for --log")
def _(place):
    return ["--log", place.write("file", "") / "log", *written(place)]


@provokes("…: No space left on device after … MB; … MB free on …; free space there and run again")
def _(place):
    place.monkeypatch.setattr("os.fsync", calls_refused(errno.ENOSPC))
    return written(place)


@provokes("…: Disk quota exceeded after … MB; … MB free on …; free space there and run again")
def _(place):
    place.monkeypatch.setattr("os.fsync", calls_refused(errno.EDQUOT))
    return written(place)


@provokes("…: Input/output error while it was written; check the disk or network file system and run again")
def _(place):
    place.monkeypatch.setattr("os.fsync", calls_refused(errno.EIO))
    return written(place)


@provokes("…: Too many open files; raise the limit (ulimit -n) and run again")
def _(place):
    place.monkeypatch.setattr("os.fsync", calls_refused(errno.EMFILE))
    return written(place)


@provokes("…: in use by …; wait for it or stop it")
def _(place):
    place.held.enter_context(single_writer(place.folder / "run"))
    return trained(place)


@provokes("…: saved at step …; run the same command to go on")
def _(place):
    from symbert.pretrain.train import Trainer

    compute = Trainer.step

    def interrupted(trainer, step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return compute(trainer, step)

    place.monkeypatch.setattr(Trainer, "step", interrupted)
    return trained(place)


@provokes("…: interrupted; the same command goes on")
def _(place):
    def interrupt(mirror, config):
        raise KeyboardInterrupt

    place.monkeypatch.setattr("symbert.mirror.Mirror.complete", interrupt)
    return ["fetch-mirror", place.folder / "mirror"]


@provokes("…: sha256 expected …, found …; …")
def _(place):
    archive = write_archive(place.folder / "ut1.tar.gz", {"blacklists/a/domains": "bad.example"})
    return [*listed(place, archive), "--record", place.write("blacklists.json", json.dumps({"sha256": 64 * "0"}))]


@provokes("…: no intact checkpoint (…); delete … and start the run over, or restore …")
def _(place):
    from symbert.pretrain.train import Trainer

    words, train = trained(place, save_every=5), Trainer.step

    def killed(trainer, step):
        if step == 7:
            raise MemoryError
        return train(trainer, step)

    place.monkeypatch.setattr(Trainer, "step", killed)
    assert cli.main([str(word) for word in words]) != 0
    (weights,) = (place.folder / "run/state/resume").glob("*/model.safetensors")
    weights.write_bytes(b"")
    return words


@provokes("…: hash expected …, found …: edited, or of …; run pack_shards again")
def _(place):
    words = trained(place)
    manifest = place.folder / "shards/manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "sequence_length": 8}))
    return words


@provokes("…: damaged …; extract the checkpoint again")
def _(place):
    from model.test_export import write_checkpoint

    write_checkpoint(place.folder / "checkpoint")
    place.write("checkpoint/model.safetensors", b"cut")
    return ["export", "--checkpoint", place.folder / "checkpoint", "--to", "bert", "--output", place.folder / "bert"]


@provokes("…: is gated; accept the terms on … and set HF_TOKEN (none is set)")
def _(place):
    place.monkeypatch.delenv("HF_TOKEN", raising=False)
    place.monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    return resolved(place, CORPUS_CHECKSUMS.repository)


@provokes("…: HTTP 403; accept the terms on … and set HF_TOKEN (…)")
def _(place):
    hub = place.hub()
    hub.host.fail(hub.interface("model", VOCABULARY.repository), sites.status(403), always=True)
    return resolved(place, VOCABULARY.repository)


@provokes("HF_TOKEN: has characters that no token has; copy it again")
def _(place):
    place.hub()
    place.monkeypatch.setenv("HF_TOKEN", "hf_canary…")
    return resolved(place, VOCABULARY.repository)


@provokes("config: unknown key '…'…")
def _(place):
    return ["plan", "--config", "pretrian={}"]


@provokes("config: '…' is …, expected …")
def _(place):
    return ["plan", "--config", "pretrain={steps: many}"]


@provokes("config: 'pretrain.shard_parameters' is true, but …")
def _(place):
    return ["plan", "--config", "pretrain={shard_parameters: true, processes: 3}"]


@provokes("…: '…' appears twice, in …; keep one of them")
def _(place):
    return ["plan", "--configfile", place.write("mine.yaml", "experiment: a\nexperiment: b\n")]


@provokes("config: '…' is '…'; did you mean '…'?")
def _(place):
    return ["plan", "--config", "sweep={attention: [symetric]}"]


@provokes("config: 'suites.…': nothing is trained on …, which reads …; leave it out")
def _(place):
    return ["plan", "--config", "suites={blimp: {epochs: 3}}"]


@provokes("attention '…' is unknown; did you mean '…'?")
def _(place):
    return ["check-operator", "symetric"]


def hosted(place: Place, operator: str, host: str) -> list[object]:
    """A command that trains an operator of the user's own in another host than the encoder."""
    own = place.write("own.yaml", f"operators: {{own: {{class: 'model.models:{operator}'}}}}\n")
    words = trained(place)
    words[words.index("--attention") + 1] = "own"
    return ["--own", own, *words, "--host", host]


@provokes("attention '…': a token's output depends on later tokens that a mask hides, …")
def _(place):
    return hosted(place, "Averaged", "decoder")


@provokes("attention '…': has a forward of its own, which knows no second sequence, …")
def _(place):
    return hosted(place, "Doubled", "encoder-decoder")


@provokes("--host …: no host that gives likelihoods of sentences; give …")
def _(place):
    return judged(place, decoder(place), host="vision")


@provokes("…: its … is …, expected …; give the checkpoint of that …")
def _(place):
    return judged(place, decoder(place), host="encoder")


@provokes("…: holds a run with other settings (…); name a new 'experiment', or set 'on_settings_change: supersede'")
def _(place):
    assert cli.main([str(word) for word in trained(place)]) == 0
    (place.folder / "run/done.json").unlink()
    return trained(place, learning_rate=0.5)


@provokes("…: loss …, gradient norm … at step …; the last checkpoint is kept: lower 'pretrain.learning_rate' …")
def _(place):
    return trained(place, learning_rate=1e30, warmup_steps=12, steps=20, evaluate_every=20, save_every=20)


@provokes("…: validation loss …; the last checkpoint is kept: lower 'pretrain.learning_rate' …")
def _(place):
    return trained(place, learning_rate=1e30, warmup_steps=0, steps=1, evaluate_every=1, save_every=1)


@provokes("…: the likelihoods of … pairs are not finite; give an earlier step …")
def _(place):
    return judged(place, decoder(place, bias=math.nan))
