import subprocess
import sys

import pytest

from benchmarks.measure import Contestant, measure

WORK = """
import time
block = bytearray(150_000_000)
begun = time.process_time()
while time.process_time() - begun < 0.3:
    pass
print('not this line')
print('{"found": 7}')
"""


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_process_is_charged_its_own_cpu_seconds_and_memory():
    working = measure(Contestant("working", [[script(WORK)]]), "test")
    idle = measure(Contestant("idle", [[script("import time; time.sleep(0.4)")]]), "test")
    assert working.cpu >= 0.3
    assert idle.wall >= 0.4
    assert idle.cpu < min(idle.wall, working.cpu)
    assert working.memory > 150
    assert working.said == {"found": 7}


def test_a_command_that_fails_stops_the_benchmark_with_its_words():
    with pytest.raises(SystemExit, match="ended with 3:\nno such part"):
        measure(
            Contestant("failing", [[script("import sys; print('no such part', file=sys.stderr); sys.exit(3)")]]), "test"
        )


def test_the_process_that_measures_imports_nothing_large(root):
    """The kernel counts the memory of whoever starts a process towards that process's peak."""
    check = "import sys, benchmarks.corpus; sys.exit('numpy' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run(script(check), cwd=root).returncode == 0
