import json

from symbert.bundle.licences import GIVER, NOT_CHECKED, NOT_STATED, TASKS, licences_of, licences_text
from symbert.bundle.results import Results
from symbert.tasks import PUBLISHED


def said(folder, **changes) -> dict[str, str]:
    path = folder / "settings/report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return {each.data: each.licence for each in licences_of(Results([folder]))}


def test_each_source_that_was_used_has_its_licence_and_no_other(folder):
    licences = said(folder)
    assert "CC0" in licences["corpus: OSCAR parts of a local mirror"]
    assert licences["UT1 blocklist"] == "CC BY-SA 4.0" and licences["BERT's vocabulary"] == "Apache-2.0"
    assert licences["RTE"] == NOT_STATED and licences["MNLI"].startswith("mostly")
    assert "KenLM model of harmful text" not in licences and "SST-2" not in licences and "HANS" not in licences
    (folder / "settings/filter.json").write_text('{"annotations": "computed"}')
    (folder / "corpus/blacklists.json").unlink()
    licences = said(folder)
    assert licences["KenLM model of harmful text"] == NOT_CHECKED and "UT1 blocklist" not in licences


def test_stand_ins_claim_no_licence_of_the_data_that_they_stand_for(folder):
    licences = said(folder, corpus_source="embedded", glue_source="embedded")
    assert not [name for name in licences if "OSCAR" in name or "RTE" in name or name == "UT1 blocklist"]
    assert "under their licences" in licences["stand-ins for GLUE"] and len(licences) == 3


def test_stand_ins_of_every_suite_were_called_those_of_glue(folder):
    suites = {"superglue": "a", "blimp": "b"}
    licences = said(
        folder, corpus_source="embedded", glue_source="embedded", tasks=["rte", "boolq", "wic"], suites=suites
    )
    assert [name for name in licences if "for the" not in name and name.startswith("stand-ins")] == [
        "stand-ins for GLUE",
        "stand-ins for SuperGLUE",
        "stand-ins for BLiMP",
    ]


def test_tasks_of_ones_own_have_the_terms_of_their_giver(folder):
    assert said(folder, tasks=["rte", "sarcasm"])["task sarcasm"] == GIVER


def test_published_tasks_of_other_suites_were_taken_for_the_users_own(folder):
    licences = said(folder, tasks=["rte", "squad2", "boolq", "wic"], suites={"blimp": "b"})
    assert licences["SQuAD 2.0"] == "CC BY-SA 4.0" and licences["BoolQ"] == "CC BY-SA 3.0"
    assert licences["WiC"] == "CC BY-NC 4.0" and licences["BLiMP"] == "CC BY 4.0"
    assert "BLiMP" not in said(folder, suites=None)


def test_the_page_has_a_row_for_each(results):
    text = licences_text(results)
    assert text.count("\n| ") == 1 + len(licences_of(results))
    assert TASKS.keys() == PUBLISHED.keys()
