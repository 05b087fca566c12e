# corpus: published parts → filtered documents → token ids → shards of rows.
PUBLISHED_PART = "oscar-corpus/OSCAR-2301/en_meta/{part}.jsonl.zst"
CHECKSUMS = "oscar-corpus/OSCAR-2301/en_meta/checksum.sha256"
HARMFUL_MODEL = "oscar-corpus/harmful-kenlms/en.arpa"
ARCHIVE = "ut1/blacklists.tar.gz"
ARCHIVE_CHECKSUMS = "ut1/MD5SUM.LST"
VOCABULARY = "google-bert/bert-base-uncased/vocab.txt"


localrules:
    download_part,
    download_blocklist,
    download_vocabulary,


rule corpus:
    input:
        f"{SHARDS}/manifest.json",
        f"{RESULTS}/report/tables/corpus.csv",


rule write_embedded_corpus:
    input:
        settings=settings("embedded"),
    output:
        parts=[f"{EMBEDDED}/{PUBLISHED_PART.format(part=part)}" for part in PARTS],
        others=[f"{EMBEDDED}/{path}" for path in (CHECKSUMS, HARMFUL_MODEL, ARCHIVE, ARCHIVE_CHECKSUMS, VOCABULARY)],
    log:
        f"{LOGS}/write_embedded_corpus.log",
    benchmark:
        f"{BENCHMARKS}/write_embedded_corpus.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2000,
    params:
        root=lambda wildcards: EMBEDDED,
    shell:
        "python -m symbert write-embedded-corpus --settings {input.settings:q} --root {params.root:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule download_part:
    input:
        published("corpus", PUBLISHED_PART, CHECKSUMS),
        settings=settings("corpus_source"),
    output:
        f"{RAW}/{{part}}.jsonl.zst" if config["corpus"]["keep_raw"] else temp(f"{RAW}/{{part}}.jsonl.zst"),
    log:
        f"{LOGS}/download_part/{{part}}.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert download-part --settings {input.settings:q} --part {wildcards.part:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule download_blocklist:
    input:
        published("corpus", ARCHIVE, ARCHIVE_CHECKSUMS),
        settings=settings("corpus_source"),
    output:
        f"{RAW}/blacklists.tar.gz",
    log:
        f"{LOGS}/download_blocklist.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert download-blocklist --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule download_vocabulary:
    input:
        published("corpus", VOCABULARY),
        settings=settings("corpus_source"),
    output:
        f"{RESULTS}/corpus/vocab.txt",
    log:
        f"{LOGS}/download_vocabulary.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert download-vocabulary --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule build_blocklist:
    input:
        archive=f"{RAW}/blacklists.tar.gz",
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
        mem_mb=4000,
    shell:
        "python -m symbert build-blocklist --archive {input.archive:q} --output {output.blocklist:q}"
        " --summary {output.summary:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule filter_part:
    input:
        part=f"{RAW}/{{part}}.jsonl.zst",
        blocklist=f"{RESULTS}/corpus/blocklist.marisa",
        settings=settings("filter"),
    output:
        documents=f"{RESULTS}/corpus/filtered/{{part}}.parquet",
        counts=f"{RESULTS}/corpus/filtered/{{part}}.counts.json",
    log:
        f"{LOGS}/filter_part/{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/filter_part/{{part}}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
    shell:
        "python -m symbert filter-part --part {input.part:q} --blocklist {input.blocklist:q}"
        " --settings {input.settings:q} --output {output.documents:q} --counts {output.counts:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tokenize_part:
    input:
        documents=f"{RESULTS}/corpus/filtered/{{part}}.parquet",
        vocabulary=f"{RESULTS}/corpus/vocab.txt",
    output:
        tokens=f"{RESULTS}/corpus/tokens/{{part}}.npy",
        offsets=f"{RESULTS}/corpus/tokens/{{part}}.offsets.npy",
    log:
        f"{LOGS}/tokenize_part/{{part}}.log",
    benchmark:
        f"{BENCHMARKS}/tokenize_part/{{part}}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2000,
    shell:
        "RAYON_NUM_THREADS={threads} python -m symbert tokenize-part --documents {input.documents:q}"
        " --vocabulary {input.vocabulary:q} --output {output.tokens:q} --offsets {output.offsets:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule pack_shards:
    input:
        tokens=expand(f"{RESULTS}/corpus/tokens/{{part}}.npy", part=PARTS),
        offsets=expand(f"{RESULTS}/corpus/tokens/{{part}}.offsets.npy", part=PARTS),
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
        mem_mb=2000,
    shell:
        "python -m symbert pack-shards --tokens {input.tokens:q} --offsets {input.offsets:q}"
        " --vocabulary {input.vocabulary:q} --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"
