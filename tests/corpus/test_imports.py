import subprocess
import sys

import pytest

ABSENT = ["snakemake", "datasets", "kenlm", "backports.zstd", "can_ada", "marisa_trie", "tokie", "torch"]  # GPU images


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("corpus.wordpiece, symbert.corpus.tokens, symbert.corpus.guarded, symbert.corpus.shards", ABSENT),
        ("sources, symbert.corpus.digests", [*ABSENT, "huggingface_hub", "httpx2"]),
        ("corpus.filters, symbert.corpus.parts, symbert.experiment.prune", ["torch"]),
    ],
)
def test_a_module_imports_none_of_what_may_be_absent_where_it_runs(modules, absent):
    script = f"import sys, symbert.{modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not set(absent) & set(loaded)
