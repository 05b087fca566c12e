# settings: what each group of rules reads, one file per group, rewritten when the configuration changes it.
# Here as in all rules, standard error goes to the terminal, where progress shows, and to the log.


localrules:
    write_settings,


rule write_settings:
    output:
        f"{RESULTS}/settings/{{section}}.json",
    log:
        f"{LOGS}/write_settings/{{section}}.log",
    conda:
        ENVIRONMENT
    params:
        values=lambda wildcards: json.dumps(SECTIONS[wildcards.section], sort_keys=True),
    shell:
        "python -m symbert write-settings --values {params.values:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


onstart:
    print(configuration.banner(config, SCALE_FILE), file=sys.stderr)
    for line in storage_plan():
        print(line, file=sys.stderr)
