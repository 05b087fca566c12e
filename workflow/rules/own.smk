# What the report is made of in an experiment of one's own: files by the options of `symbert exhibit`.
DONE, TIMING = published_files("done.json"), published_files("timing.json")
SIZES_TRAINED = list(dict.fromkeys(run.size for run in EXPERIMENT.runs()))
SPEEDS_MEASURED = expand(f"{RESULTS}/report/speeds/{{size}}.json", size=SIZES_TRAINED)
COUNTS = counts(CORPUS.results)
STAGES = ("filter", "pack", "pretrain", "task", "glue", "report")
OTHERS = [suite for suite in EXPERIMENT.suites if suite.name != "glue"]
INPUTS = {
    "settings": [settings("report")],
    "scores": final_scores("glue"),
    "curve": curve_scores("glue"),
    "robustness": robustness(),
    "speeds": SPEEDS_MEASURED,
    "provenance": [*DONE, *TIMING, *published_by_others("done.json"), *published_by_others("timing.json")],
    "origin": [],
    "sections": [
        *map(settings, STAGES),
        *(settings(section) for suite in OTHERS for section in (suite.rows_section, suite.name)),
        *([settings("blimp")] if EXPERIMENT.has_judges else []),
    ],
    "counts": COUNTS,
    "records": records(PARTS, CORPUS.results),
    "manifest": [MANIFEST],
    "anatomy": [f"{RESULTS}/report/anatomy.csv"] if SWEEP["anatomy"] else [],
    "hosts": published_by_others("done.json"),
    "courses": published_by_others("metrics.jsonl"),
    "blimp": judgements(),
    "probes": [f"{RESULTS}/report/probes.csv"] if SWEEP["probes"] else [],
}
OF_SUITE = {suite.name: {"scores": final_scores(suite.name), "curve": curve_scores(suite.name)} for suite in OTHERS}
OF_SIZE = {
    size: {
        option: published_files(name, [size]) for option, name in (("done", "done.json"), ("metrics", "metrics.jsonl"))
    }
    for size in SWEEP["sizes"]
}
# Options without input files: sessions may be pruned, which makes nothing anew.
WORDS = {
    "finetune_seeds": SWEEP["finetune_seeds"],
    "curve_seeds": CURVE["finetune_seeds"],
    # Exits are compared over three seeds or more.
    "pretrain_seeds": SWEEP["pretrain_seeds"] if len(SWEEP["pretrain_seeds"]) > 2 else [],
    "sessions": [
        str(home.place(home.state, run) / "provenance.json") for run, home in (HOMES | HOMES_OF_OTHERS).items()
    ],
}
