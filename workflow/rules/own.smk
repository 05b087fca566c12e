# What the report is made of in an experiment of one's own: files by the options of `symbert exhibit`.
DONE, TIMING = runs(f"{RUN}/done.json"), runs(f"{RUN}/timing.json")
STAGES = ("filter", "pack", "pretrain", "task", "glue", "report")
INPUTS = {
    "settings": [settings("report")],
    "scores": final_scores(),
    "curve": curve_scores(),
    "robustness": robustness(),
    "timing": TIMING,
    "provenance": [*DONE, *TIMING],
    "origin": [],
    "sections": [settings(section) for section in STAGES],
    "counts": COUNTS,
    "categories": COUNTS if BY_CATEGORY else [],
    "records": records(PARTS),
    "manifest": [f"{SHARDS}/manifest.json"],
    "anatomy": [f"{RESULTS}/report/anatomy.csv"] if SWEEP["anatomy"] else [],
    "probes": [f"{RESULTS}/report/probes.csv"] if SWEEP["anatomy"] else [],
}
OF_SIZE = {
    size: {"done": runs(f"{RUN}/done.json", [size]), "metrics": runs(f"{RUN}/metrics.jsonl", [size])}
    for size in SWEEP["sizes"]
}
# Options without input files: sessions may be pruned and benchmarks lost, and neither makes anything anew.
WORDS = {
    "finetune_seeds": SWEEP["finetune_seeds"],
    "curve_seeds": CURVE["finetune_seeds"],
    # Exits are compared over three seeds or more.
    "pretrain_seeds": SWEEP["pretrain_seeds"] if len(SWEEP["pretrain_seeds"]) > 2 else [],
    "sessions": runs(f"{STATE}/provenance.json"),
    "benchmarks": [BENCHMARKS],
}
