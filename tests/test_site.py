import pytest

from symbert.errors import ConfigError
from symbert.site import Limits, OfKind, Site, read_site


def grown(amount):
    return lambda wildcards, attempt: amount * attempt


def asked(site: Site, attempt: int = 1, **own) -> dict:
    """What a rule asks for at an attempt."""
    resources = site.resources(own, minutes=grown(60), memory=grown(4000))
    return {
        key: value("wildcards", attempt)
        if key in ("runtime", "mem_mb") and callable(value)
        else value("wildcards")
        if callable(value)
        else value
        for key, value in resources.items()
    }


def test_without_a_site_slurm_decides_and_minutes_and_memory_grow_with_the_attempts():
    assert asked(Site()) == {"mem_mb": 4000, "abreast": 1, "runtime": 60}
    assert asked(Site(), attempt=3, mem_mb=10) == {"mem_mb": 10, "abreast": 1, "runtime": 180}


def test_rules_with_gpus_go_to_nodes_that_have_them_for_as_long_as_these_allow():
    site = Site(OfKind("short", "a100"), Limits(90, 720), OfKind(gpu="nvlink"))
    assert asked(site, attempt=2)["slurm_partition"] == "short" and asked(site, attempt=2)["runtime"] == 90
    gpu = asked(site, runtime=1440, gpu=1)
    assert (gpu["slurm_partition"], gpu["runtime"], gpu["constraint"]) == ("a100", 720, "nvlink")
    assert asked(site, runtime=10, gpu=1)["runtime"] == 10 and "constraint" not in asked(site)


@pytest.mark.parametrize(
    ("site", "own", "gpus"),
    [
        (Site(), {"gpu": 2}, {}),
        (Site(gpu_type="a100"), {"gpu": lambda wildcards: 2}, {"gpu_model": "a100"}),
        (Site(gpu_type="a100"), {"gpu": lambda wildcards: 0}, {"gpu_model": ""}),
        (Site(gpus_by="gres"), {"gpu": 2}, {"gpu": 0, "gres": "gpu:2"}),
        (Site(gpus_by="gres", gpu_type="h100"), {"gpu": 1}, {"gpu": 0, "gres": "gpu:h100:1"}),
        (Site(gpus_by="gres"), {"gpu": 0}, {"gpu": 0, "gres": ""}),
        (Site(gpu_type="h100"), {"gpu": 0, "gres": lambda wildcards: "gpu:4"}, {"gres": "gpu:h100:4"}),
    ],
)
def test_gpus_are_asked_for_as_the_site_knows_them(site, own, gpus):
    """Those of several nodes by gres, which counts them for each."""
    told = asked(site, **own)
    assert {key: told[key] for key in told if key.startswith("g")} == gpus


def test_every_key_of_the_example_is_one_and_its_defaults_are_slurms(root):
    example = read_site(root / "profiles/slurm/site.example.yaml")
    assert example.partition == OfKind("main", "gpu") and (example.account, example.modules) == (None, ())
    text = (root / "profiles/slurm/site.example.yaml").read_text()
    assert all(f"\n{key}:" in text for key in Site.__struct_fields__)


def test_a_wrong_key_is_named_with_the_nearest(tmp_path):
    (tmp_path / "site.yaml").write_text("partitions: {cpu: main}\n")
    with pytest.raises(ConfigError, match=r"site\.yaml: unknown key 'partitions'; did you mean 'partition'"):
        read_site(tmp_path / "site.yaml")
    assert read_site(tmp_path / "none.yaml") == Site()
