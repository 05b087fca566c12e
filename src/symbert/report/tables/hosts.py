"""How operators compare in other hosts than the encoder, a row per host, size and operator."""

from symbert.hosts import HOSTS
from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Rounded, Table, decimal_of, table_of
from symbert.report.statistics import spread


def hosts_table(data: Collection) -> Table | None:
    """Validation loss at the last step, and what else the host is measured by, per host, size and operator."""
    if data.hosts is None:
        return None
    runs = data.hosts
    hosts = [HOSTS[host] for host in dict.fromkeys(runs["host"])]
    names = list(dict.fromkeys(name for host in hosts for name in (host.measure, *host.further_measures)))
    signatures = {name: text for row in runs["signatures"] for name, text in row.items()}
    several = runs["pretrain_seed"].nunique() > 1
    rows = []
    for (host, size, attention), seeds in runs.groupby(["host", "size", "attention"], sort=False):
        loss = spread(seeds["validation_loss"])
        measured = [{HOSTS[host].measure: row.measure, **row.further_measures} for row in seeds.itertuples()]
        rows.append(
            {
                "host": host,
                "size": size,
                "attention": attention,
                "parameters": int(seeds["parameters"].iloc[0]),
                "steps": int(seeds["steps"].iloc[0]),
                **({"pretrain_seeds": loss.count} if several else {}),
                "validation_loss": decimal_of(loss.mean, 3),
                **({"std": decimal_of(loss.deviation, 3)} if several else {}),
                **{name: _mean([each[name] for each in measured if name in each]) for name in names},
            }
        )
    wording = captions.wording_of(data.settings)
    return table_of(
        rows,
        f"Operators in other hosts than the encoder ({captions.seeds_of(runs['pretrain_seed'].nunique())})."
        f"\n\n{wording.experiment}. Validation loss: nats per target at the last step"
        f"{'; std is the sample standard deviation over pre-training seeds, all else a mean' if several else ''}. "
        f"{captions.tasks_of_hosts(data.settings, runs['host'])}{_cited(signatures)}",
        "tab:hosts",
    )


def _mean(values: list[float]) -> Rounded | None:
    """None for a measure of other hosts."""
    return decimal_of(spread(values).mean, 3) if values else None


def _cited(signatures: dict[str, str]) -> str:
    """How scores were computed, in the words of their package."""
    return f" By sacrebleu: {'; '.join(f'{name} {text}' for name, text in signatures.items())}." if signatures else ""
