# Where published files come from: the demo, a mirror or the hub. Downloads run on the submitting machine.

with one_line_errors():
    limit_resource(workflow, "download", lambda: 4)  # another number: --resources download=8


localrules:
    resolve_corpus,
    download_part,
    download_blocklist,
    download_vocabulary,
    download_harmful_model,


rule resolve_corpus:
    input:
        settings=settings("corpus_source"),
    output:
        RESOLVED,
    log:
        f"{LOGS}/resolve_corpus.log",
    conda:
        ENVIRONMENT
    params:
        repositories=REPOSITORIES,
    shell:
        "python -m symbert --log {log:q} resolve-corpus --settings {input.settings:q} --repositories {params.repositories:q}"
        " --output {output:q}"


if FILES:

    localrules:
        record_files,

    rule record_files:
        input:
            repositories=RESOLVED,
            counts=counts(),
        output:
            f"{RESULTS}/corpus/sources.json",
        log:
            f"{LOGS}/record_files.log",
        conda:
            ENVIRONMENT
        params:
            counts=given("counts"),
            files=lambda wildcards: option_with_files("files", FILES.values()),
        shell:
            "python -m symbert --log {log:q} record-files --repositories {input.repositories:q} {params.counts} {params.files}"
            " --output {output:q}"


rule download_part:
    input:
        batch=batch_before,
        intake=ancient(settings("intake")),
        settings=settings("corpus_source"),
        sources=RESOLVED,
    output:
        f"{RAW}/{{part}}.jsonl.zst" if config["corpus"]["keep_raw"] else temp(f"{RAW}/{{part}}.jsonl.zst"),
    log:
        f"{LOGS}/download_part/{{part}}.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    params:
        batch=option("batch"),
    shell:
        "python -m symbert --log {log:q} download-part --settings {input.settings:q} --sources {input.sources:q}"
        " --part {wildcards.part:q} {params.batch:q} --intake {input.intake:q} --output {output:q}"


rule download_blocklist:
    input:
        settings=settings("blocklist_source"),
    output:
        archive=f"{RAW}/blacklists.tar.gz",
        record=f"{RESULTS}/corpus/blacklists.json",
    log:
        f"{LOGS}/download_blocklist.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    shell:
        "python -m symbert --log {log:q} download-blocklist --settings {input.settings:q} --output {output.archive:q}"
        " --record {output.record:q}"


rule download_vocabulary:
    input:
        settings=settings("corpus_source"),
        sources=RESOLVED,
    output:
        f"{RESULTS}/corpus/vocab.txt",
    log:
        f"{LOGS}/download_vocabulary.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    shell:
        "python -m symbert --log {log:q} download-vocabulary --settings {input.settings:q} --sources {input.sources:q}"
        " --output {output:q}"


rule download_harmful_model:
    input:
        settings=settings("corpus_source"),
        sources=RESOLVED,
    output:
        f"{RESULTS}/corpus/{config['corpus']['harmful_model']}",
    log:
        f"{LOGS}/download_harmful_model.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    params:
        file=config["corpus"]["harmful_model"],
    shell:
        "python -m symbert --log {log:q} download-harmful-model --settings {input.settings:q} --sources {input.sources:q}"
        " --file {params.file:q} --output {output:q}"
