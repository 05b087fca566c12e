# site: what every job asks of a cluster beside what its rule says, by profiles/slurm/site.yaml: that of the folder where
# Snakemake is run, or else the project's. After all rules.
# `--set-resources RULE:KEY=VALUE` changes one of them and keeps the others; `--default-resources` adds to them.
from symbert.site import read_site

SITE_FILE = Path("profiles/slurm/site.yaml")

with one_line_errors():
    SITE = read_site(SITE_FILE if SITE_FILE.is_file() else PROJECT / SITE_FILE)
    if is_on_cluster(workflow) or "SLURM_JOB_ID" in os.environ:
        ask_also(workflow, lambda own: SITE.resources(own, minutes=growing(60), memory=growing(4000)))
        if SITE.modules:
            shell.prefix("; ".join([*SITE.modules, "set -euo pipefail; "]))  # modules may use what is not set
