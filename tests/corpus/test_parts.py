"""A part through the filters to token ids: what is kept, what is counted, and which ids."""

import hashlib
import os
import random
import re
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.oscar import prepare_texts, record, write_part, write_settings
from corpus.stock import TEXTS, Liar, stock_ids
from symbert.corpus import document, guarded, parts, tokens
from symbert.corpus.document import documents
from symbert.corpus.filters import REASONS
from symbert.corpus.parts import prepare_part
from symbert.corpus.tokens import OFFSET, count_words, id_hash
from symbert.corpus.wordpiece import Reference, encoder
from symbert.errors import ConfigError, DataError, IntegrityError, MissingInputError, UsageError
from symbert.files import read_json, sha256_of
from symbert.sources import CORPUS_CHECKSUMS, DEMO, DEMO_PARTS, HARMFUL_MODEL, VOCABULARY, name_of_text, part_file

OWN = {"rules": [], "annotations": "computed"}
OWN_RULES = {**OWN, "rules": ["quality_warnings"]}
BAD_URL = "https://phishing.example/a"
MANY = TEXTS * 5 + [f"the value of {number} and the given function" for number in range(900)]

# Each with the reason that is counted, by facts of the paper's and authors' edge semantics.
CASES = [
    (record(), None),
    (record(content=""), None),
    (record(categories=["press"]), None),
    (record(categories=[], quality_warnings=[]), None),
    (record(url="https://phishing.example.org/"), None),
    ({"content": "x", "metadata": {"harmful_pp": 500}}, None),
    (record(categories=["press", "sect"]), "blocked_category"),
    (record(url=BAD_URL), "blocked_url"),
    (record(harmful_pp=None), "no_perplexity"),
    ({"content": "x", "metadata": {}}, "no_perplexity"),
    (record(harmful_pp=5.0), "perplexity_too_low"),
    (record(harmful_pp=100_000), "perplexity_too_high"),
    (record(quality_warnings=["tiny"]), "quality_warning"),
    (record(url=BAD_URL, categories=["adult"], harmful_pp=1, quality_warnings=["noisy"]), "blocked_category"),
    (record(url=BAD_URL, harmful_pp=None, quality_warnings=["noisy"]), "blocked_url"),
    (record(harmful_pp=1e6, quality_warnings=["noisy"]), "perplexity_too_high"),
]


@pytest.fixture
def run(tmp_path, blocklist, vocabulary):
    """Prepares records, with files and changes to the filter; gives the lines of kept documents and the counts."""
    output = tmp_path / "parts/en_meta_part_1.npy"

    def run(lines: list, max_bad_fraction=0.0, **changes) -> tuple[list[int], dict]:
        part = write_part(tmp_path / "en_meta_part_1.jsonl.zst", lines)
        write_settings(output.parent, vocabulary, **{"blocklist": blocklist, **changes})
        prepare_part(part, output, max_bad_fraction)
        facts, kept = read_json(output.with_suffix(".json")), np.load(output.with_suffix(".offsets.npy"))["line"]
        assert facts["record"]["documents"] == facts["counts"]["kept"] == len(kept)
        return kept.tolist(), facts["counts"]

    return run


def test_every_document_is_counted_once_and_overlaps_ignore_the_order(run):
    kept, counts = run([line for line, _ in CASES])
    assert kept == [number for number, (_, reason) in enumerate(CASES, start=1) if reason is None]
    for line, reason in CASES:
        dropped = run([line])[1]["dropped"]
        assert [name for name, count in dropped.items() if count] == ([reason] if reason else [])
    assert (counts["part"], counts["read"], counts["kept"], counts["bad"]) == ("en_meta_part_1", 16, 6, 0)
    assert counts["dropped"] == dict(zip(REASONS, [2, 2, 2, 1, 2, 1], strict=True))
    assert counts["overlaps"] == dict(zip(REASONS, [2, 3, 3, 2, 2, 4], strict=True))
    characters = {"kept": counts["characters"]["kept"], **counts["characters"]["dropped"]}
    for name, counted in characters.items():
        assert counted == sum(len(line["content"]) for line, reason in CASES if (reason or "kept") == name)
    assert counts["characters"]["read"] == sum(characters.values())
    assert counts["without_url"] == sum("warc_headers" not in line for line, _ in CASES) == 2


@pytest.mark.parametrize("annotations", ["published", "computed"])
def test_a_parent_domain_counts_by_suffix_only(run, annotations):
    urls = [BAD_URL, BAD_URL.replace("https://", "https://www."), "https://good.example/"]
    for match, dropped in (("exact", 1), ("suffix", 2)):
        _, counts = run([record(url=url) for url in urls], match=match, annotations=annotations, rules=["categories"])
        assert (counts["overlaps"]["blocked_url"], counts["kept"]) == (dropped, 3 - dropped)


def test_a_document_is_known_by_its_id_and_one_without_id_by_its_text(run, tmp_path):
    lines = [record(text, number=number) for number, text in enumerate(["first\u2028line", "second\r\nline"])]
    nameless = {"content": "é" * 9, "metadata": {"harmful_pp": 500}}
    kept, _ = run([lines[0], record(harmful_pp=None), lines[1], nameless])
    assert kept == [1, 3, 4]
    names = ["<urn:uuid:0>", "<urn:uuid:1>", f"sha256:{hashlib.sha256(('é' * 9).encode()).hexdigest()}"]
    assert np.load(tmp_path / "parts/en_meta_part_1.offsets.npy")["id_hash"].tolist() == list(map(id_hash, names))


def test_a_part_from_a_pipe_is_no_empty_part(tmp_path, vocabulary):
    """Its SHA-256 was computed of all, then nothing was left to filter: read 0, kept 0, exit 0; a named pipe hung."""
    os.mkfifo(tmp_path / "named")
    reader, writer = os.pipe()
    os.write(writer, b'{"text": "a"}\n')
    os.close(writer)
    folder = write_settings(tmp_path / "parts", vocabulary, rules=[])
    for part in (tmp_path / "named", Path(f"/dev/fd/{reader}")):
        with pytest.raises(UsageError, match=f"{part}: "):
            prepare_part(part, folder / "own.npy")
    os.close(reader)
    assert [path.name for path in folder.iterdir()] == ["settings.json"]


def test_bad_lines_are_counted_and_named_up_to_the_budget_and_end_the_command_beyond_it(run, tmp_path):
    lines = [record(), b"{}", record(harmful_pp=None), b"\xff", record()]
    for budget, message in ((0.0, r"zst:2: "), (0.39, r"2 of 5 lines are bad, .*max_bad_fraction 0\.39; .*zst:2: ")):
        with pytest.raises(DataError, match=message) as failure:
            run(lines, max_bad_fraction=budget)
        assert "\n" not in str(failure.value)
        assert [path.name for path in (tmp_path / "parts").iterdir()] == ["settings.json"]
    kept, counts = run(lines, max_bad_fraction=0.4)
    assert (counts["read"], counts["kept"], counts["bad"], sum(counts["dropped"].values())) == (5, 2, 2, 1)
    assert [message.split(": ")[0].rsplit(":", 1)[1] for message in counts["bad_lines"]] == ["2", "4"]
    assert kept == [1, 5]


def test_a_flipped_bit_of_a_part_is_found_wherever_it_is(run, tmp_path):
    """zstd frames carry no checksum as published, so most flips would decode to other text."""
    lines = [record(f"text number {number}", number=number) for number in range(30)]
    run(lines)
    part, output = tmp_path / "en_meta_part_1.jsonl.zst", tmp_path / "parts/en_meta_part_1.npy"
    whole = part.read_bytes()
    (tmp_path / "checksum.sha256").write_text(f"{sha256_of(part)}  {part.name}\n")
    run(lines, checksums=tmp_path / "checksum.sha256")
    for position in range(0, len(whole), 7):
        flipped = bytes([*whole[:position], whole[position] ^ 1, *whole[position + 1 :]])
        part.write_bytes(flipped)
        with pytest.raises(IntegrityError, match=r"en_meta_part_1\.jsonl\.zst: sha256 expected .* found"):
            prepare_part(part, output)
    part.write_bytes(whole)
    (tmp_path / "checksum.sha256").write_text(f"{sha256_of(part)}  another\n")
    with pytest.raises(MissingInputError, match=r"en_meta_part_1\.jsonl\.zst: not in .*checksum\.sha256"):
        prepare_part(part, output)
    assert read_json(output.with_suffix(".json"))["counts"]["file_sha256"] == sha256_of(part)


@pytest.mark.usefixtures("kenlm")
def test_what_changed_in_a_mirror_after_it_came_is_refused(tmp_path, blocklist):
    files = [part_file("en_meta_part_1"), VOCABULARY, CORPUS_CHECKSUMS, HARMFUL_MODEL]
    for file in files:
        (tmp_path / file.location).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.location).write_bytes((DEMO / file.location).read_bytes())
    paths = text, vocabulary, checksums, model = [tmp_path / file.location for file in files]
    sums = [f"{sha256_of(path)}  {path.relative_to(tmp_path)}\n" for path in paths]
    (tmp_path / "SHA256SUMS").write_text("".join(sums))
    needed = {"checksums": checksums, "harmful_model": model, "blocklist": blocklist}
    output = write_settings(tmp_path / "parts", vocabulary, **needed, annotations="computed") / "en_meta_part_1.npy"
    prepare_part(text, output)
    for path in paths:
        intact = path.read_bytes()
        path.write_bytes(intact + b"\n")
        with pytest.raises(IntegrityError, match=f"{path}: sha256 expected .*; delete it"):
            prepare_part(text, output)
        path.write_bytes(intact)


FORMS = ["{} *{}\n", "SHA256 ({1}) = {0}\n", "SHA2-256({1})= {0}\n", "{}\t{}\n", "{}  {}\r\n", "\ufeff{}  ./{}\n"]


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_file_is_refused_whatever_the_form_of_its_list(tmp_path, vocabulary, form):
    """Only lines with two blanks were read; a list of any other was taken for an empty one."""
    text, output = tmp_path / "m/text.jsonl", write_settings(tmp_path / "parts", vocabulary, **OWN) / "x.npy"
    for content, listed in (("right", "right"), ("wrong", "right")):
        digest = hashlib.sha256(f'{{"text": "{listed}"}}\n'.encode()).hexdigest().upper()
        text.parent.mkdir(exist_ok=True)
        text.write_text(f'{{"text": "{content}"}}\n')
        text.with_name("SHA256SUMS").write_text(form.format(digest, "text.jsonl"), newline="")
        if content == listed:
            prepare_part(text, output)
        else:
            with pytest.raises(IntegrityError, match=r"text\.jsonl: sha256 expected"):
                prepare_part(text, output)


def test_a_file_that_a_list_does_not_name_is_said_and_one_in_a_folder_is_verified(tmp_path, vocabulary, capsys):
    output = write_settings(tmp_path / "parts", vocabulary, **OWN) / "x.npy"
    sums, text = tmp_path / "m/SHA256SUMS", tmp_path / "m/own/text.jsonl"
    text.parent.mkdir(parents=True)
    text.write_text('{"text": "a"}\n')
    sums.write_text(f"{'0' * 64}  text.jsonl\n{'0' * 64}  m/own/text.jsonl\n")
    prepare_part(text, output)
    assert f"warning: {text}: not in {sums}, so its content is not verified" in capsys.readouterr().err
    for name in (text, "own/text.jsonl", "own//../own/./text.jsonl"):
        sums.write_text(f"{'0' * 64}  {name}\n")
        with pytest.raises(IntegrityError, match=f"sha256 expected {'0' * 64}"):
            prepare_part(text, output)
    sums.write_text("not a list\n")
    with pytest.raises(DataError, match="m/SHA256SUMS:1: expected"):
        prepare_part(text, output)
    datasets.Dataset.from_dict({"text": ["a", "b"]}).save_to_disk(tmp_path / "m/saved")
    (data,) = (tmp_path / "m/saved").glob("*.arrow")
    for digest in (sha256_of(data), "0" * 64):
        sums.write_text(f"{digest}  saved/{data.name}\n")
        capsys.readouterr()
        if digest == "0" * 64:
            with pytest.raises(IntegrityError, match=f"{data}: sha256 expected"):
                prepare_part(tmp_path / "m/saved", output)
        else:
            prepare_part(tmp_path / "m/saved", output)
            assert "state.json: not in" in capsys.readouterr().err


def test_a_category_that_the_blocklist_does_not_know_is_refused(run):
    with pytest.raises(ConfigError, match="blocked_categories: 'adlut' is no category .*did you mean 'adult'"):
        run([record()], blocked_categories=["adlut"])


def test_text_without_annotations_needs_no_model_and_no_blocklist_where_their_filters_are_not_chosen(run):
    own = [{"text": "Too short.", "url": BAD_URL}, {"text": "the file\n" + "a long line of words " * 9}, {"text": ""}]
    kept, counts = run(own, blocklist=None, annotations="computed", rules=[])
    assert (len(kept), counts["read"], sum(counts["dropped"].values()), counts["without_url"]) == (3, 3, 0, 2)
    kept, counts = run(own, blocklist=None, annotations="computed", rules=["quality_warnings"])
    assert (len(kept), counts["dropped"]["quality_warning"]) == (0, 3)
    kept, counts = run(own, annotations="computed", rules=["categories"])
    assert (len(kept), counts["dropped"]["blocked_category"]) == (2, 1)


def test_kenlm_is_needed_for_computed_perplexities_alone(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    records, model = [record(), record(harmful_pp=1.0)], DEMO / HARMFUL_MODEL.location
    assert run(records)[0] == [1]
    assert run([{"text": "one"}], annotations="computed", rules=["categories"])[0] == [1]
    with pytest.raises(ConfigError, match=r"rules: perplexity .*kenlm.*; with g\+\+ .*: pip install kenlm, or leave"):
        run([{"text": "one"}], harmful_model=model, annotations="computed")


records = st.builds(
    record,
    url=st.sampled_from([BAD_URL, "https://good.example/", "https://press.example/"]),
    harmful_pp=st.none() | st.floats(0, 2e5),
    categories=st.none() | st.lists(st.sampled_from(["adult", "press"]), max_size=2),
    quality_warnings=st.none() | st.lists(st.sampled_from(["tiny", "noisy"]), max_size=2),
    content=st.text(max_size=5),
)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=6), st.lists(records, max_size=6))
def test_preparing_two_parts_is_preparing_their_concatenation(run, tmp_path, first, second):
    ids = tmp_path / "parts/en_meta_part_1.npy"
    (kept_first, first_counts), first_ids = run(first), np.load(ids)
    (kept_second, second_counts), second_ids = run(second), np.load(ids)
    (kept, counts), both = run(first + second), np.load(ids)
    assert kept == kept_first + [line + len(first) for line in kept_second]
    assert both.tolist() == [*first_ids.tolist(), *second_ids.tolist()]
    for reason in REASONS:
        assert counts["dropped"][reason] == first_counts["dropped"][reason] + second_counts["dropped"][reason]
    assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())


def test_a_part_is_its_documents_one_after_another_and_its_record_says_so(tmp_path, vocabulary):
    facts = prepare_texts(tmp_path / "parts", "mine", MANY, vocabulary)["record"]
    ids, offsets = np.load(tmp_path / "parts/mine.npy"), np.load(tmp_path / "parts/mine.offsets.npy")
    assert (ids.dtype, offsets.dtype) == (np.uint16, OFFSET)
    pieces = [piece.tolist() for piece in np.split(ids, offsets["start"][1:])]
    assert pieces == stock_ids(vocabulary, MANY)
    assert f"{offsets['id_hash'][0]:016x}" == hashlib.sha256(b"<urn:uuid:0>").hexdigest()[:16]
    assert offsets["line"].tolist() == list(range(2, 2 * len(MANY) + 1, 2))
    assert (facts["part"], facts["documents"], facts["tokens"]) == ("mine", len(MANY), len(ids))
    assert facts["words"] == sum(len(text.encode().split()) for text in MANY)
    assert facts["vocabulary_sha256"] == sha256_of(vocabulary)
    assert facts["tokens_sha256"] == sha256_of(tmp_path / "parts/mine.npy")
    assert facts["offsets_sha256"] == sha256_of(tmp_path / "parts/mine.offsets.npy")
    assert facts["encoder"]["name"].startswith("tokie ")
    sampled = {*range(16), *np.flatnonzero(offsets["id_hash"] % 200 == 0)}
    assert facts["encoder"]["checked"] == len(sampled) > 16
    assert facts["encoder"]["reference"] == 20, "four texts, five times each"


@given(st.text(st.sampled_from("ab \t\n\r\v\f\x1c\x85\u2003é"), max_size=12), st.integers(1, 4))
def test_words_are_runs_between_ascii_white_space_wherever_the_text_is_cut(text, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "MEGABYTE", at_once)
        assert count_words(text) == len(text.encode().split())


def test_the_memory_of_a_long_document_is_a_few_bytes_a_character(vocabulary):
    """Of a document of 100 MB a list of its words, and its ids of four or eight bytes twice, took 1.6 GB."""
    reference, text = Reference(encoder(vocabulary)), "the function returns\n" * 40_000
    few, many = [], []
    for peaks, length in ((few, len(text) // 2), (many, len(text))):
        for use in (count_words, reference.encode):
            tracemalloc.start()
            use(text[:length])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert all(2 * (more - less) < 3 * len(text) for less, more in zip(few, many, strict=True))


LINES = ["the value\r", "\u0301function", "ΟΔΟΣ", "ὈΔΥΣΣΕΎΣ.", "[MASK]", "the given function " * 6, "中文", " a\tb "]


def test_the_files_of_a_part_do_not_depend_on_the_pieces_in_which_a_long_text_is_held(tmp_path, vocabulary):
    draw, text, made = random.Random(0), tmp_path / "own.txt", []
    texts = [draw.choices(LINES, k=count) for count in (1, 2, 5, 9, 30, 90)]
    text.write_text("\n\n".join(map("\n".join, texts)))
    for piece in (document.PIECE, 30, 0):
        output = write_settings(tmp_path / "parts", vocabulary, split_by_content=True, **OWN) / "own.npy"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(document, "PIECE", piece)
            prepare_part(text, output)
        made.append([file.read_bytes() for file in sorted(output.parent.glob("own.*"))])
    assert len(made[0]) == 3 and made[0] == made[1] == made[2]
    assert len(np.load(output.with_suffix(".offsets.npy"))) == len(texts)


def test_memory_does_not_grow_with_the_lines_of_a_document_by_more_than_they_take_compressed(tmp_path, vocabulary):
    """A .txt of a sentence a line is one document: its text, its copies and its ids took four bytes a character."""
    draw, peaks = random.Random(0), []
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    output = write_settings(tmp_path / "parts", vocabulary, split_by_content=True, **OWN_RULES) / "own.npy"
    text, sizes = tmp_path / "own.txt", (300_000, 1_300_000)
    for size in sizes:
        lines = [" ".join(draw.choices(words, k=25)) for _ in range(size // 160)]
        text.write_text("\n".join(lines))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parts, "FIRST_CHECKED", 0)  # of which tokenizers takes half of the time
            tracemalloc.start()
            prepare_part(text, output)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert read_json(output.with_suffix(".json"))["counts"]["kept"] == 1
    assert peaks[1] - peaks[0] < 0.7 * (sizes[1] - sizes[0])


def test_a_long_document_is_encoded_before_many_more_are_read(tmp_path, vocabulary, monkeypatch):
    """Sixty-four were read first, each of which may have 64 MB."""
    read, ahead = [0], []

    class Counting(Reference):
        def stream(self, pieces):
            ahead.append(read[0] - len(ahead))
            return super().stream(["a"])

        def encoded(self, pieces):
            return super().encoded(["a"])

    def counted(*arguments):
        for line in documents(*arguments):
            read[0] += 1
            yield line

    monkeypatch.setattr(parts, "documents", counted)
    monkeypatch.setattr(parts, "guarded", lambda reference: None)
    monkeypatch.setattr(parts, "Reference", Counting)
    prepare_texts(tmp_path / "parts", "own", ["a " * 300_000] * 8, vocabulary)
    assert len(ahead) == 8 and max(ahead) <= 2


def test_a_text_of_the_users_own_that_was_changed_since_the_start_is_refused(tmp_path, vocabulary):
    """Its token ids would lie under the digest of another text."""
    text = tmp_path / "own.txt"
    text.write_text("one document\n")
    folder = write_settings(tmp_path / "parts", vocabulary, split_by_content=True, **OWN)
    output = folder / f"{name_of_text(str(text), sha256_of(text))}.npy"
    prepare_part(text, output)
    text.write_text("another document\n")
    with pytest.raises(DataError, match=r"own\.txt: changed since the workflow was started; start it again"):
        prepare_part(text, output)


def test_the_bytes_do_not_depend_on_the_encoder(tmp_path, vocabulary, monkeypatch, capsys):
    """tokenizers, tokie, and a tokie that errs on a document of the sample that is checked."""
    texts, honest = MANY[55:200], guarded.load_tokie
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tokie", None)
        expected = prepare_texts(tmp_path / "tokenizers", "part", texts, vocabulary)["record"]
    monkeypatch.setattr(guarded, "load_tokie", lambda tokenizer: Liar(honest(tokenizer), "given "))
    capsys.readouterr()
    assert prepare_texts(tmp_path / "liar", "part", texts, vocabulary)["record"] == expected
    assert re.search(r"part\.jsonl: document <urn:uuid:\d+>: .*; tokenizers encodes", capsys.readouterr().err)
    monkeypatch.setattr(guarded, "load_tokie", honest)
    found = prepare_texts(tmp_path / "tokie", "part", texts, vocabulary)["record"]
    assert expected.pop("encoder")["name"].startswith("tokenizers ")
    assert found.pop("encoder")["name"].startswith("tokie ")
    assert found == expected


def test_every_filter_is_seen_to_act_in_the_demo_and_most_text_is_kept(tmp_path, blocklist):
    needed, total = {"blocklist": blocklist, "checksums": DEMO / CORPUS_CHECKSUMS.location}, Counter()
    folder = write_settings(tmp_path / "parts", DEMO / VOCABULARY.location, **needed)
    for number in range(1, DEMO_PARTS + 1):
        part = f"en_meta_part_{number}"
        prepare_part(DEMO / part_file(part).location, folder / f"{part}.npy")
        counts = read_json(folder / f"{part}.json")["counts"]
        total.update(counts["dropped"])
        total.update({f"characters {key}": counts["characters"][key] for key in ("read", "kept")})
    assert {reason: total[reason] for reason in REASONS[:5]} == dict(zip(REASONS, [11, 11, 11, 6, 6], strict=False))
    assert total["quality_warning"] > 15
    assert total["characters kept"] > 0.6 * total["characters read"]
