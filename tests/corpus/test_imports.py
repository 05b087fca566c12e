import subprocess
import sys

import pytest

ABSENT_FROM_GPU_IMAGES = ("snakemake", "datasets", "kenlm", "backports.zstd", "can_ada", "marisa_trie", "tokie")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("symbert.corpus.wordpiece", (*ABSENT_FROM_GPU_IMAGES, "torch")),
        ("symbert.corpus.tokens", (*ABSENT_FROM_GPU_IMAGES, "torch")),
        ("symbert.corpus.guarded", (*ABSENT_FROM_GPU_IMAGES, "torch")),
        ("symbert.corpus.shards", (*ABSENT_FROM_GPU_IMAGES, "torch")),
        ("symbert.corpus.sources", (*ABSENT_FROM_GPU_IMAGES, "torch", "huggingface_hub", "httpx2")),
        ("symbert.filters", ("torch",)),
        ("symbert.corpus.embedded", ("torch",)),
    ],
)
def test_a_module_imports_none_of_what_may_be_absent_where_it_runs(module, absent):
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not set(absent) & set(loaded)
