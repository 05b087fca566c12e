"""What a cluster's site wants of jobs: partitions and their limits, account, quality of service, GPUs, modules.

profiles/slurm/site.yaml says it, once for all rules; site.example.yaml has each key with its meaning.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from symbert.project import read_yaml
from symbert.settings import Count, Settings, settings_from

Resource = Any  # a value, or a function of the wildcards and the attempt


class OfKind(Settings):
    """Something that may differ between jobs with and without GPUs."""

    cpu: str | None = None
    gpu: str | None = None


class Limits(Settings):
    """The longest that a job may take, in minutes."""

    cpu: Count | None = None
    gpu: Count | None = None


class Site(Settings):
    """The keys of site.yaml; each may be left out."""

    partition: OfKind = OfKind()
    minutes: Limits = Limits()
    constraint: OfKind = OfKind()
    account: str | None = None
    qos: str | None = None
    gpu_type: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.]+$")] | None = None
    gpus_by: Literal["gpus", "gres"] = "gpus"  # the option of sbatch that asks for them
    modules: tuple[str, ...] = ()  # lines of bash that run before each command

    def resources(self, own: dict[str, Resource], minutes: Resource, memory: Resource) -> dict[str, Resource]:
        """What the plugin for Slurm is to ask for a rule, given what the rule says of its own.

        A rule with the resource `gpu` is one for nodes with GPUs. `minutes` and `memory` (MB) are those of a rule that
        says none.
        """
        kind = "gpu" if "gpu" in own else "cpu"
        asked = {
            "slurm_partition": getattr(self.partition, kind),
            "slurm_account": self.account,
            "qos": self.qos,
            "constraint": getattr(self.constraint, kind),
        }
        asked = {key: value for key, value in asked.items() if value is not None}
        asked |= {"mem_mb": own.get("mem_mb", memory), "abreast": 1}
        asked["runtime"] = cut(own.get("runtime", minutes), getattr(self.minutes, kind))
        return asked | (self._gpus(own) if kind == "gpu" else {})

    def _gpus(self, own: dict[str, Resource]) -> dict[str, Resource]:
        """How a rule's GPUs are asked for. What a rule says of `gres` is for each of several nodes."""
        named = f"gpu:{self.gpu_type}" if self.gpu_type else "gpu"
        if "gres" in own:
            gres = own["gres"]
            return {"gres": lambda wildcards: of(gres, wildcards).replace("gpu", named, 1)}
        if self.gpus_by == "gres":
            count = own["gpu"]
            return {"gpu": 0, "gres": lambda wildcards: f"{named}:{n}" if (n := of(count, wildcards)) else ""}
        if self.gpu_type:
            count = own["gpu"]
            return {"gpu_model": lambda wildcards: self.gpu_type if of(count, wildcards) else ""}
        return {}


def of(value: Resource, *arguments: Any) -> Any:
    """A resource, or what its function gives."""
    return value(*arguments) if callable(value) else value


def cut(minutes: Resource, limit: int | None) -> Resource:
    """Minutes, at most the limit of a partition."""
    return minutes if limit is None else lambda wildcards, attempt: min(of(minutes, wildcards, attempt), limit)


def read_site(path: Path) -> Site:
    """The site of a file; without one, Slurm's own defaults. ConfigError names the key."""
    return settings_from(read_yaml(path) if path.is_file() else {}, Site, str(path))
