# corpus: parts → filtered documents → token ids → shards of rows.
# Parts are taken in batches. A part waits for the count of the batch before the last, so that two batches lie on the
# disk at most, and is left out when that count fills the corpus. On a cluster the parts of a batch are one job.


localrules:
    corpus,
    count_batch,


rule corpus:
    input:
        MANIFEST,
        REPORT.made(exhibit for exhibit in REPORT.exhibits if exhibit.chapter == "Corpus"),
        FILES_RECORD,


rule build_blocklist:
    input:
        archive=f"{RAW}/blacklists.tar.gz",
        record=f"{RESULTS}/corpus/blacklists.json",
    output:
        blocklist=f"{RESULTS}/corpus/blocklist.marisa",
        summary=f"{RESULTS}/corpus/blocklist.json",
    log:
        f"{LOGS}/build_blocklist.log",
    benchmark:
        f"{BENCHMARKS}/build_blocklist.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(4000),
        runtime=growing(120),
    shell:
        "python -m symbert --log {log:q} build-blocklist --archive {input.archive:q} --record {input.record:q} --output {output.blocklist:q}"
        " --summary {output.summary:q}"


rule filter_part:
    input:
        part=lambda wildcards: FILES.get(wildcards.part, f"{RAW}/{wildcards.part}.jsonl.zst"),
        batch=batch_before,
        intake=ancient(settings("intake")),
        blocklist=f"{RESULTS}/corpus/blocklist.marisa" if BY_CATEGORY else [],
        settings=settings("filter"),
        sources=RESOLVED,
        harmful_model=f"{RESULTS}/corpus/{config['corpus']['harmful_model']}" if BY_MODEL else [],
    output:
        documents=f"{RESULTS}/corpus/filtered/{{part}}.parquet",
        counts=f"{RESULTS}/corpus/filtered/{{part}}.counts.json",
    log:
        f"{LOGS}/filter_part/{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/filter_part/{{part}}.tsv"
    group:
        parts_together
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(1000),
    params:
        batch=option("batch"),
        blocklist=option("blocklist"),
        harmful_model=option("harmful_model"),
    shell:
        "python -m symbert --log {log:q} filter-part --part {input.part:q} --name {wildcards.part:q}"
        " {params.blocklist:q} --settings {input.settings:q} --sources {input.sources:q} {params.batch:q} --intake {input.intake:q} {params.harmful_model:q}"
        " --output {output.documents:q} --counts {output.counts:q}"


rule tokenize_part:
    input:
        documents=f"{RESULTS}/corpus/filtered/{{part}}.parquet",
        vocabulary=f"{RESULTS}/corpus/vocab.txt",
    output:
        tokens=f"{RESULTS}/corpus/tokens/{{part}}.npy",
        offsets=f"{RESULTS}/corpus/tokens/{{part}}.offsets.npy",
        record=f"{RESULTS}/corpus/tokens/{{part}}.json",
    log:
        f"{LOGS}/tokenize_part/{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/tokenize_part/{{part}}.tsv"
    group:
        parts_together
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(2000),
    params:
        split="--split-by-content" if FILES else "",
    shell:
        "RAYON_NUM_THREADS={threads} python -m symbert --log {log:q} tokenize-part --documents {input.documents:q}"
        " --vocabulary {input.vocabulary:q} --output {output.tokens:q} --offsets {output.offsets:q} --record {output.record:q}"
        " {params.split}"


rule count_batch:
    input:
        records=lambda wildcards: records(BATCHES[int(wildcards.batch)]),
        previous=lambda wildcards: [batch_file(int(wildcards.batch) - 1)] if int(wildcards.batch) else [],
    output:
        batch_file("{batch}"),
    log:
        f"{LOGS}/count_batch/{{batch}}.log",
    conda:
        ENVIRONMENT
    params:
        records=given("records"),
        previous=option("previous"),
    shell:
        "python -m symbert --log {log:q} count-batch {params.records} {params.previous:q} --output {output:q}"


rule pack_shards:
    input:
        tokens=expand(f"{RESULTS}/corpus/tokens/{{part}}.npy", part=PARTS),
        offsets=expand(f"{RESULTS}/corpus/tokens/{{part}}.offsets.npy", part=PARTS),
        records=records(PARTS),
        counts=counts(),
        vocabulary=f"{RESULTS}/corpus/vocab.txt",
        settings=settings("pack"),
    output:
        f"{SHARDS}/manifest.json",
    log:
        f"{LOGS}/pack_shards.log",
    benchmark:
        f"{BENCHMARKS}/pack_shards.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(2000),
        runtime=growing(480),
    params:
        tokens=given("tokens"),
        offsets=given("offsets"),
        records=given("records"),
        counts=given("counts"),
    shell:
        "python -m symbert --log {log:q} pack-shards {params.tokens} {params.offsets}"
        " {params.records} {params.counts} --vocabulary {input.vocabulary:q} --settings {input.settings:q}"
        " --output {output:q}"
