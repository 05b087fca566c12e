"""Whether what is still to be written fits the disks that `storage` names."""

from collections import defaultdict
from pathlib import Path

from symbert.cost import Files
from symbert.errors import InputOutputError
from symbert.files import free_space
from symbert.progress import data_size


def by_mount(files: list[Files]) -> dict[Path, tuple[float, int, list[str]]]:
    """By file system: bytes to come at most at one time, bytes free, and the configuration's keys of what comes.

    Raw parts are gone when shards are written: of both the larger counts.
    """
    groups, free = defaultdict(list), {}
    for one in sorted(files, key=lambda one: -one.to_come):
        free_bytes, mount = free_space(one.folder)
        groups[mount].append(one)
        free[mount] = free_bytes
    mounts = {}
    for mount, group in groups.items():
        passing = sum(one.to_come for one in group if one.passing)
        shards = sum(one.to_come for one in group if one.kind == "shards")
        at_once = sum(one.to_come for one in group) - min(passing, shards)
        mounts[mount] = (at_once, free[mount], list(dict.fromkeys(one.key for one in group if one.to_come)))
    return mounts


def refuse_small(files: list[Files]) -> None:
    """InputOutputError when what is to come does not fit: first file system, the keys, what to do."""
    for mount, (needed, free, keys) in by_mount(files).items():
        if needed > free:
            movable = [key for key in keys if key.startswith("storage.")]
            larger = f"set '{movable[0]}' to" if movable else "make results/ a link to"
            raise InputOutputError(
                f"config: {', '.join(keys)}: {data_size(needed)} are still to be written on {mount}, where "
                f"{data_size(free)} are free; free space there, or {larger} a folder on a larger file system"
            )
