"""The licences of the data that results rest on, as their publishers state them; only of what was used."""

from dataclasses import dataclass

from symbert.bundle.results import Results
from symbert.sources import OSCAR_TERMS, SOURCES, VOCABULARY
from symbert.suites import SUITES, suite_of
from symbert.tasks import PUBLISHED

NOT_STATED = "not stated by its publisher"
NOT_CHECKED = "not checked here: see its page"
GIVER = "known to whoever gave the files"
MADE_HERE = "MIT, as symbert, which makes it"
HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Licence:
    """What was used, what its licence is, and where that is stated."""

    data: str
    licence: str
    place: str = ""


IN_RESEARCH = "SuperGLUE's authors understand that it may be used and passed on in research"

TASKS = {
    "cola": Licence("CoLA", f"{NOT_STATED}; its sentences are from published linguistics", "nyu-mll.github.io/CoLA"),
    "sst2": Licence("SST-2", NOT_STATED, "nlp.stanford.edu/sentiment"),
    "mrpc": Licence("MRPC", "Microsoft's own terms", "microsoft.com/en-us/download/details.aspx?id=52398"),
    "qqp": Licence("QQP", "Quora's terms of service, for non-commercial use", "quoradata.quora.com"),
    "stsb": Licence("STS-B", "several, by the sources of its sentences", "ixa2.si.ehu.eus/stswiki"),
    "mnli": Licence(
        "MNLI",
        "mostly that of the Open American National Corpus; fiction CC BY 3.0, CC BY-SA 3.0 or public domain",
        "cims.nyu.edu/~sbowman/multinli",
    ),
    "qnli": Licence("QNLI", "CC BY-SA 4.0, that of SQuAD", "rajpurkar.github.io/SQuAD-explorer"),
    "rte": Licence("RTE", NOT_STATED, "gluebenchmark.com/tasks"),
    "squad2": Licence("SQuAD 2.0", "CC BY-SA 4.0", "rajpurkar.github.io/SQuAD-explorer"),
    "wnli": Licence("WNLI", NOT_CHECKED, "gluebenchmark.com/tasks"),
    "boolq": Licence("BoolQ", "CC BY-SA 3.0", "github.com/google-research-datasets/boolean-questions"),
    "cb": Licence("CommitmentBank", f"{NOT_STATED}; {IN_RESEARCH}", "github.com/mcdm/CommitmentBank"),
    "copa": Licence("COPA", f"{NOT_CHECKED}; {IN_RESEARCH}", "asgordon.github.io/copa.html"),
    "multirc": Licence("MultiRC", f"{NOT_CHECKED}; {IN_RESEARCH}", "cogcomp.seas.upenn.edu/multirc"),
    "record": Licence("ReCoRD", "two, by the source of its passages", "sheng-z.github.io/ReCoRD-explorer"),
    "superglue_rte": Licence("RTE of SuperGLUE", f"{NOT_STATED}; {IN_RESEARCH}", "super.gluebenchmark.com/tasks"),
    "wic": Licence("WiC", "CC BY-NC 4.0", "pilehvar.github.io/wic"),
    "wsc": Licence("Winograd schemas", "CC BY 4.0", "cs.nyu.edu/davise/papers/WinogradSchemas/WS.html"),
}
BLIMP = Licence("BLiMP", "CC BY 4.0", "github.com/alexwarstadt/blimp")
OUT_OF_DOMAIN = {
    "hans": Licence("HANS", "MIT", "github.com/tommccoy1/hans"),
    "ax": Licence("GLUE's diagnostics", NOT_STATED, "gluebenchmark.com/diagnostics"),
    "advglue": Licence("AdvGLUE", NOT_CHECKED, f"{HUB}/datasets/AI-Secure/adv_glue"),
}


def licences_of(results: Results) -> list[Licence]:
    """The licences of all data that the results rest on, corpus first; of an import that of its scores alone."""
    if results.is_import:
        return [Licence("imported scores", GIVER)]
    return [*_of_corpus(results), *_of_tasks(results)]


def _of_corpus(results: Results) -> list[Licence]:
    source = SOURCES.get(results.settings.corpus_source)
    if source is None:
        return [Licence("corpus", GIVER)]
    rows = [Licence(f"corpus: {source.training_text}", source.terms)]
    if source.terms == OSCAR_TERMS:
        rows = [Licence(f"corpus: {source.training_text}", OSCAR_TERMS, f"{HUB}/datasets/oscar-corpus/OSCAR-2301")]
    if source.is_stand_in:
        words = "stand-ins for the UT1 blocklist, the model of harmful text and the vocabulary"
        return [*rows, Licence(words, MADE_HERE)]
    chosen = results.read("settings/filter.json") or {}
    if results.read("corpus/blacklists.json"):
        rows.append(Licence("UT1 blocklist", "CC BY-SA 4.0", "dsi.ut-capitole.fr/blacklists"))
    if chosen.get("annotations") == "computed" and results.settings.max_harmful_perplexity is not None:
        words = "KenLM model of harmful text"
        rows.append(Licence(words, NOT_CHECKED, f"{HUB}/oscar-corpus/harmful-kenlms"))
    return [*rows, Licence("BERT's vocabulary", "Apache-2.0", f"{HUB}/{VOCABULARY.repository}")]


def _of_tasks(results: Results) -> list[Licence]:
    source = SOURCES.get(results.settings.glue_source)
    tasks = results.settings.tasks if results.scores else []
    published = [task for task in tasks if task in PUBLISHED]
    judged = [SUITES["blimp"].title] if results.has_judges else []
    if source is not None and source.is_stand_in:
        titles = [*dict.fromkeys(suite_of(PUBLISHED[task]).title for task in published), *judged]
        known = [Licence(f"stand-ins for {title}", source.terms) for title in titles]
    else:
        known = [*(TASKS[task] for task in published), *([BLIMP] if judged else [])]
    own = [Licence(f"task {task}", GIVER) for task in tasks if task not in PUBLISHED]
    asked = (results.read("settings/robustness.json") or {}).get("sets", []) if results.robustness else []
    return [*known, *own, *(OUT_OF_DOMAIN[name] for name in asked if name in OUT_OF_DOMAIN)]


def licences_text(results: Results) -> str:
    """A Markdown page of them."""
    rows = [f"| {each.data} | {each.licence} | {each.place} |" for each in licences_of(results)]
    return "\n".join(
        [
            "# Licences of the data",
            "",
            "The archive has none of these data: only counts, losses, scores and hashes that were computed with them.",
            "Licences are as far as publishers state them; ask the publisher before you pass data on.",
            "",
            "| data | licence | stated at |",
            "|---|---|---|",
            *rows,
            "",
            "Code, tables, figures and texts of this archive are under the MIT licence of symbert (LICENSE).",
            "",
        ]
    )
