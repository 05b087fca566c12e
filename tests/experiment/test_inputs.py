import os

import pytest

from experiment.traces import write
from symbert.experiment import inputs
from symbert.experiment.inputs import has_corpus


@pytest.mark.parametrize("section", inputs.CORPUS_SETTINGS)
def test_a_corpus_of_other_settings_is_not_there(experiment, traces, folder, section):
    traces.corpus()
    path = write(folder / experiment.results / f"settings/{section}.json", experiment.settings[section])
    assert has_corpus(experiment)
    write(path, {"another": 1})
    assert not has_corpus(experiment)


def test_more_parts_are_more_work_unless_the_rows_were_full_without_them(experiment, changed, traces):
    manifest = traces.corpus()
    more = changed({"corpus": {"embedded": {"parts": 5}}})
    assert has_corpus(experiment) and not has_corpus(more)
    record = write(inputs.tokens_record(more, "en_meta_part_5"), {})
    os.utime(record, (manifest.stat().st_mtime - 9,) * 2)
    assert has_corpus(more), "it was left out"
    os.utime(record, (manifest.stat().st_mtime + 9,) * 2)
    assert not has_corpus(more), "its tokens are still to be packed"
    assert not has_corpus(changed({"corpus": {"embedded": {"parts": 2}}})), "of fewer parts it is another corpus"


def test_glue_of_the_hub_is_there_when_all_tables_are(changed, folder):
    hub = changed({"glue": {"source": "hub"}, "sweep": {"tasks": ["rte", "cola"]}})
    write(folder / hub.results / "glue/raw/rte.parquet", 0)
    assert inputs.missing_tasks(hub) == ["cola"] and inputs.missing_tasks(changed({})) == []
    write(folder / hub.results / "glue/raw/cola.parquet", 0)
    assert inputs.missing_tasks(hub) == []


@pytest.mark.parametrize("parts", [3, "en_meta_part_1", None, {"a": 1}, [[1], 2]])
def test_a_manifest_whose_parts_are_no_list_of_names_is_no_corpus_and_no_bug(experiment, traces, parts):
    write(traces.corpus(), {"hash": "c", "parts": parts})
    assert not has_corpus(experiment)
