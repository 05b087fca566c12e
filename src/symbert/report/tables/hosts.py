"""How operators compare in other hosts than the encoder, a row per host, size and operator."""

from symbert.hosts import HOSTS
from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.statistics import spread


@exhibit(chapter="Hosts", place=1, heading="Operators in other hosts", reads=("hosts",))
def hosts_table(data: Data) -> Table:
    """Validation loss at the last step, and what else the host is measured by, per host, size and operator."""
    runs = data.hosts
    measures = list(dict.fromkeys(HOSTS[host].measure for host in runs["host"]))
    several = runs["pretrain_seed"].nunique() > 1
    rows = []
    for (host, size, attention), seeds in runs.groupby(["host", "size", "attention"], sort=False):
        loss, measure = spread(seeds["validation_loss"]), spread(seeds["measure"])
        rows.append(
            {
                "host": host,
                "size": size,
                "attention": attention,
                "parameters": int(seeds["parameters"].iloc[0]),
                **({"pretrain_seeds": loss.count} if several else {}),
                "validation_loss": decimal_of(loss.mean, 3),
                **({"std": decimal_of(loss.deviation, 3)} if several else {}),
                **{name: decimal_of(measure.mean, 3) if name == HOSTS[host].measure else None for name in measures},
            }
        )
    wording = captions.wording_of(data.settings)
    return table_of(
        rows,
        f"Operators in other hosts than the encoder ({captions.seeds_of(runs['pretrain_seed'].nunique())})."
        f"\n\n{wording.experiment}. Validation loss: nats per target at the last step"
        f"{'; std is the sample standard deviation over pre-training seeds, all else a mean' if several else ''}. "
        f"{' '.join(HOSTS[host].task for host in dict.fromkeys(runs['host']))}",
        "tab:hosts",
    )
