# settings: what each group of rules reads, one file per group, rewritten when the configuration changes it.
# In all rules --log writes standard error to the rule's log, where the logger plugin reads progress and failures.

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
        refuse_changed(EXPERIMENT, jobs_to_run(workflow))
        for line in announce(EXPERIMENT):
            print(line, file=sys.stderr)
        for line in unfollowed_code():
            print(f"symbert: warning: {line}", file=sys.stderr)
