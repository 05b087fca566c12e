# glue: BLiMP's minimal pairs → how every checkpoint judges them, without fine-tuning.
from symbert.hosts import JUDGING


localrules:
    download_blimp,


rule download_blimp:
    input:
        settings=settings("glue_source"),
        sources=f"{RESULTS}/glue/sources.json",
    output:
        EXPERIMENT.pairs,
    log:
        f"{LOGS}/download_blimp.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    shell:
        "python -m symbert --log {log:q} download-blimp --settings {input.settings:q} --sources {input.sources:q}"
        " --output {output:q}"


for judging, host in [each for each in JUDGING.items() if each[1] in SWEEP["hosts"]]:

    rule:
        name:
            judging
        input:
            checkpoint=checkpoint_of(host),
            raw=lambda wildcards: pairs_file(EXPERIMENT),
            vocabulary=WORD_PIECES,
            settings=settings("blimp"),
        output:
            of_host(EXPERIMENT.judged, host),
        log:
            f"{LOGS}/{judging}/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.log",
        benchmark:
            f"{BENCHMARKS}/{judging}/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.tsv"
        conda:
            ENVIRONMENT
        threads: training_threads
        resources:
            mem_mb=training_memory,
            gpu=lambda wildcards: int(SIZES[wildcards.size].needs_gpu),
        params:
            checkpoint=lambda wildcards, input: Path(input.checkpoint[0]).parent,
            host=[] if host == ENCODER else ["--host", host],
        shell:
            f"{GPUS_GIVEN} "
            "exec python -m symbert --log {log:q} measure-blimp --checkpoint {params.checkpoint:q} --raw {input.raw:q}"
            " --vocabulary {input.vocabulary:q} --settings {input.settings:q} --size {wildcards.size:q}"
            " --attention {wildcards.attention:q} --pretrain-seed {wildcards.seed:q} --step {wildcards.step:q}"
            " {params.host:q} --output {output:q} --threads {threads}"
