# corpus: published files → token ids of each part's kept documents → packed rows.


localrules:
    download_file,


rule download_file:
    """Download a published file: word pieces, blocklist, harmful-text model, tasks, models."""
    output:
        "results/published/{repository}/{file}",
    log:
        "results/logs/download/{repository}/{file}.log",
    wildcard_constraints:
        repository="(?!dataset--)[^/]+",
        file=r"(?!en_meta/en_meta_part_).+",
    conda:
        "../../envs/symbert.yaml"
    resources:
        download=1,
    shell:
        "exec python -m symbert download {output:q} 2> {log:q}"


rule download_part:
    """Download a part of OSCAR and check it against the publisher's list."""
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
        "exec python -m symbert download {output:q} --checksums {input.checksums:q} 2> {log:q}"


rule download_dataset:
    """Download a file of a dataset of the hub."""
    output:
        DATASET_FILE if EXPERIMENT.config.corpus.keep_raw else temp(DATASET_FILE),
    log:
        "results/logs/download/dataset--{repository}/{file}.log",
    group:
        "parts"
    conda:
        "../../envs/symbert.yaml"
    resources:
        download=1,
        mem_mb=1000,
    shell:
        "exec python -m symbert download {output:q} 2> {log:q}"


rule build_blocklist:
    """Make UT1's lists of blocked domains and URLs searchable."""
    input:
        ancient(EXPERIMENT.reads(BuildBlocklist.outputs()["trie"])),
    output:
        **BuildBlocklist.outputs(),
    log:
        "results/corpus/blocklist-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: BuildBlocklist.memory * attempt,
        runtime=lambda wildcards, attempt: BuildBlocklist.minutes * attempt,
    shell:
        "exec python -m symbert build-blocklist {output.trie:q} 2> {log:q}"


rule prepare_part:
    """Filter the documents of a part and encode those that are kept as token ids."""
    input:
        ancient(EXPERIMENT.reads(PrepareParts.outputs()["tokens"])),
        text=ancient(EXPERIMENT.reads("{part}")),
    output:
        **PrepareParts.outputs(),
    log:
        "results/corpus/parts-{key}/logs/{part}.txt",
    group:
        "parts"
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: PrepareParts.memory * attempt,
    shell:
        "exec python -m symbert prepare-part {input.text:q} {output.tokens:q}"
        f" --max-bad-fraction {EXPERIMENT.config.corpus.filter.max_bad_fraction} 2> {{log:q}}"


rule pack:
    """Pack the documents of all parts into rows for training and validation."""
    input:
        ancient(EXPERIMENT.reads(Pack.outputs()["manifest"])),
    output:
        **Pack.outputs(),
    log:
        "results/corpus/shards-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: Pack.memory * attempt,
        runtime=lambda wildcards, attempt: Pack.minutes * attempt,
    shell:
        "exec python -m symbert pack {output:q} 2> {log:q}"


rule write_text:
    """Write the rows of a text of a study."""
    output:
        **WriteText.outputs(),
    log:
        "results/corpus/text-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    shell:
        "exec python -m symbert write-text {output:q} 2> {log:q}"
