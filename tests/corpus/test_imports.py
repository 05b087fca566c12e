import subprocess
import sys

import pytest

ABSENT_FROM_GPU_IMAGES = (
    "snakemake",
    "datasets",
    "kenlm",
    "backports.zstd",
    "can_ada",
    "marisa_trie",
    "tokie",
    "torch",
)


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        (
            ", ".join(f"symbert.corpus.{name}" for name in ("wordpiece", "tokens", "guarded", "shards")),
            ABSENT_FROM_GPU_IMAGES,
        ),
        ("symbert.sources, symbert.corpus.digests", (*ABSENT_FROM_GPU_IMAGES, "huggingface_hub", "httpx2")),
        ("symbert.corpus.filters, symbert.corpus.parts, symbert.experiment.mirror", ("torch",)),
    ],
)
def test_a_module_imports_none_of_what_may_be_absent_where_it_runs(modules, absent):
    script = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not set(absent) & set(loaded)
