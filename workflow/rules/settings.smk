# settings: what each group of rules reads, one file per group, rewritten when the configuration changes it.
# In all rules --log takes standard error to a log, from which the console has progress and what fails.

from symbert.operators import unfollowed_code


localrules:
    write_settings,


rule write_settings:
    input:
        refuse_stand_ins,
        lambda wildcards: force_if_outdated(
            settings(wildcards.section),
            configuration.is_outdated(settings(wildcards.section), SECTIONS[wildcards.section]),
        ),
    output:
        f"{RESULTS}/settings/{{section}}.json",
    log:
        f"{LOGS}/write_settings/{{section}}.log",
    priority: LONGEST  # for which they wait
    conda:
        ENVIRONMENT
    params:
        values=lambda wildcards: json.dumps(SECTIONS[wildcards.section], sort_keys=True),
    shell:
        "python -m symbert --log {log:q} write-settings --values {params.values:q} --output {output:q}"


onstart:
    with one_line_errors():
        jobs, on_cluster = jobs_to_run(workflow), is_on_cluster(workflow)
        for line in announce(EXPERIMENT, jobs, on_cluster):
            print(line, file=sys.stderr)
        for line in unfollowed_code():
            print(f"symbert: warning: {line}", file=sys.stderr)
        heed_termination(workflow)
        if not on_cluster:
            drop_rate_limit(workflow)
