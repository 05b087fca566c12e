import os

import pytest

from symbert.corpus.state import SETTINGS, corpus_home, is_packed, tokens_record
from traces import Traces, write


@pytest.mark.parametrize("section", SETTINGS)
def test_a_corpus_of_other_settings_is_not_there(experiment, traces, folder, section):
    traces.corpus()
    path = write(folder / experiment.results / f"settings/{section}.json", experiment.settings[section])
    assert is_packed(experiment)
    write(path, {"another": 1})
    assert not is_packed(experiment)


def test_more_parts_are_more_work_unless_the_rows_were_full_without_them(experiment, changed):
    fewer, more = changed({"corpus": {"parts": 3}}), experiment
    manifest = Traces(fewer).corpus()
    assert is_packed(fewer) and not is_packed(more)
    record = write(tokens_record(more, "en_meta_part_4"), {})
    os.utime(record, (manifest.stat().st_mtime - 9,) * 2)
    assert is_packed(more), "it was left out"
    os.utime(record, (manifest.stat().st_mtime + 9,) * 2)
    assert not is_packed(more), "its tokens are still to be packed"
    assert not is_packed(changed({"corpus": {"parts": 2}})), "of fewer parts it is another corpus"


@pytest.mark.parametrize("parts", [3, "en_meta_part_1", None, {"a": 1}, [[1], 2]])
def test_a_manifest_whose_parts_are_no_list_of_names_is_no_corpus_and_no_bug(experiment, traces, parts):
    write(traces.corpus(), {"hash": "c", "parts": parts})
    assert not is_packed(experiment)


@pytest.mark.xfail(strict=True, reason="solved by keyed paths")
def test_an_experiment_that_extends_one_of_other_text_does_not_read_its_corpus(changed, folder):
    """The names of the files were compared, not their content: other text gave the old report and exit 0."""
    text = folder / "crawl/part.jsonl"
    text.parent.mkdir()
    text.write_text('{"content": "a text"}\n')
    files = {"corpus": {"source": "files", "files": "crawl/*.jsonl"}}
    base = changed({**files, "experiment": "base"})
    Traces(base).corpus()
    other = {**files, "experiment": "other", "extends": base.name}
    assert corpus_home(changed(other)).name == base.name
    text.write_text('{"content": "another text"}\n')
    assert corpus_home(changed(other)).name == "other"
