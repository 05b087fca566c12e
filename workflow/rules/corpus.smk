# corpus: published files → token ids of each part's kept documents → packed rows.


localrules:
    download_file,


rule download_file:
    output:
        "results/published/{repository}/{file}",
    log:
        "results/logs/download/{repository}/{file}.log",
    wildcard_constraints:
        file=r"(?!en_meta/en_meta_part_).+",
    conda:
        "../../envs/symbert.yaml"
    resources:
        download=1,
    shell:
        "python -m symbert download {output:q} 2> {log:q}"


rule download_part:
    input:
        checksums=ancient("results/published/{repository}/en_meta/checksum.sha256"),
    output:
        PART if EXPERIMENT.config.corpus.keep_raw else temp(PART),
    log:
        "results/logs/download/{repository}/{part}.log",
    group:
        "parts"
    conda:
        "../../envs/symbert.yaml"
    resources:
        download=1,
        mem_mb=1000,
    shell:
        "python -m symbert download {output:q} --checksums {input.checksums:q} 2> {log:q}"


rule build_blocklist:
    input:
        ancient(EXPERIMENT.reads("results/corpus/blocklist-{key}/blocklist.marisa")),
    output:
        blocklist="results/corpus/blocklist-{key}/blocklist.marisa",
        summary="results/corpus/blocklist-{key}/blocklist.json",
    log:
        "results/corpus/blocklist-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    shell:
        "python -m symbert build-blocklist {output.blocklist:q} 2> {log:q}"


rule prepare_part:
    input:
        ancient(EXPERIMENT.reads("results/corpus/parts-{key}/{part}.npy")),
        text=ancient(EXPERIMENT.reads("{part}")),
    output:
        tokens="results/corpus/parts-{key}/{part}.npy",
        offsets="results/corpus/parts-{key}/{part}.offsets.npy",
        counts="results/corpus/parts-{key}/{part}.json",
    log:
        "results/corpus/parts-{key}/logs/{part}.txt",
    group:
        "parts"
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
    shell:
        "python -m symbert prepare-part {input.text:q} {output.tokens:q}"
        f" --max-bad-fraction {EXPERIMENT.config.corpus.filter.max_bad_fraction} 2> {{log:q}}"


rule pack:
    input:
        ancient(EXPERIMENT.reads("results/corpus/shards-{key}/manifest.json")),
    output:
        "results/corpus/shards-{key}/manifest.json",
    log:
        "results/corpus/shards-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 480 * attempt,
    shell:
        "python -m symbert pack {output:q} 2> {log:q}"


rule pack_pairs:
    input:
        ancient(EXPERIMENT.reads("results/corpus/pairs-{key}/manifest.json")),
    output:
        "results/corpus/pairs-{key}/manifest.json",
    log:
        "results/corpus/pairs-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
    shell:
        "python -m symbert pack-pairs {output:q} 2> {log:q}"


rule write_text:
    output:
        "results/corpus/text-{key}/manifest.json",
    log:
        "results/corpus/text-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    shell:
        "python -m symbert write-text {output:q} 2> {log:q}"
