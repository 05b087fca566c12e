"""The inputs of a stage of `make bench-scaling`, each size in a folder of its own.

python -m benchmarks.scaled MODULE:FUNCTION FOLDER COUNT ...
"""

import importlib
import sys
from pathlib import Path


def main() -> None:
    place, folder, *counts = sys.argv[1:]
    module, function = place.split(":")
    write = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    for count in counts:
        (Path(folder) / count / "input").mkdir(parents=True)
        write(Path(folder) / count, int(count))


if __name__ == "__main__":
    main()
