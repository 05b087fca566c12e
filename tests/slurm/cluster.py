"""A Slurm of one node on loopback, with GPUs that are only device files: `python -m slurm.cluster start | stop`.

Needs root. Everything lies in HOME, but for two links in /etc/slurm, where Slurm's commands look for their
configuration. The GPUs are the null device under other names: Slurm counts them and deals them out.
"""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NAME = "symbert-tests"  # of the cluster
HOME = Path("/var/lib/symbert-slurm")
LINKS = [Path("/etc/slurm/slurm.conf"), Path("/etc/slurm/gres.conf")]
PACKAGES = ("slurm-wlm", "munge")  # of Debian
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
DAEMONS = ("slurmd", "slurmctld", "munged")  # in the order in which they stop
CPUS, MEMORY, GPUS = 8, 64_000, 2  # of the node, MB; Slurm believes it
PATIENCE = 45  # seconds in which a daemon comes up or ends; longer than KillWait

# A job that was sent back waits as long as its credential lives: cred_expire, by default two minutes.
CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,bf_interval=3,sched_interval=3
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
MinJobAge=600
KillWait=20
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes={host} MaxTime=1-0 State=UP
"""


def why_not() -> str | None:
    """Why no Slurm can be started here; None where it can, after its packages were installed."""
    if os.geteuid():
        return "a Slurm needs root to start"
    for path in (HOME, *LINKS):
        if path.exists():
            return f"{path} is there: this machine has a Slurm of its own, or a test of it goes on"
    if shutil.which("apt-get") is None and _missing():
        return f"no {', '.join(_missing())} here, and no apt-get to install them"
    if _missing():
        _install()
    return f"apt-get did not install {', '.join(_missing())}" if _missing() else None


def _missing() -> list[str]:
    return [program for program in PROGRAMS if shutil.which(program) is None]


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
    for words in (["update"], ["install", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", *options, *words], env=environment, stdout=subprocess.DEVNULL, check=False)


def start() -> None:
    """Start the daemons and wait until the node takes jobs; RuntimeError when it does not."""
    host = socket.gethostname().partition(".")[0]
    _write_files(host)
    munge = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "munge.seed"}
    daemon = {"pid-file": "munged.pid", "log-file": "munged.log"}
    _run("munged", "--force", *(f"--{option}={HOME / name}" for option, name in {**munge, **daemon}.items()))
    _run("slurmctld")
    _run("slurmd")
    _wait_until(lambda: _answer("sinfo", "-h", "-N", "-p", "gpu", "-o", "%T") == "idle", "no node is idle")


def stop() -> None:
    """End the jobs and what `start` started, by its files of process numbers, and remove what it wrote."""
    if _is_alive(_process(HOME / "slurmctld.pid")):
        _answer("scancel", "--user=root")
        with suppress(RuntimeError):  # told by the tests, if at all; the daemons end in any case
            _wait_until(lambda: not _answer("squeue", "-h"), "jobs do not end")
    for daemon in DAEMONS:
        _end(HOME / f"{daemon}.pid")
    for process in _left_by_jobs():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for link in LINKS:
        if link.is_symlink() and link.readlink().parent == HOME:
            link.unlink()
    shutil.rmtree(HOME, ignore_errors=True)


def _write_files(host: str) -> None:
    for folder in (HOME, HOME / "state", HOME / "spool"):
        folder.mkdir(mode=0o755)
    key = HOME / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    ports = dict(zip(("controller_port", "node_port"), _free_ports(2), strict=True))
    facts = {"name": NAME, "host": host, "home": HOME, "cpus": CPUS, "memory": MEMORY, "gpus": GPUS, **ports}
    (HOME / "slurm.conf").write_text(CONFIGURATION.format(**facts))
    (HOME / "gres.conf").write_text(f"NodeName={host} Name=gpu File={HOME}/gpu[0-{GPUS - 1}]\n")
    for number in range(GPUS):
        os.mknod(HOME / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))  # as /dev/null
    for link in LINKS:
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(HOME / link.name)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{command[0]} does not start: {done.stderr.strip() or done.stdout.strip()}")


def _answer(*command: str) -> str:
    """What a command prints; nothing when it fails, as all do before the controller is up."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout.strip()


def _wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            logs = "".join(path.read_text()[-2000:] for path in sorted(HOME.glob("slurm*.log")))
            raise RuntimeError(f"{otherwise} after {PATIENCE} s\n{logs}")
        time.sleep(0.25)


def _process(file: Path) -> int | None:
    return int(file.read_text()) if file.is_file() and file.read_text().strip() else None


def _is_alive(process: int | None) -> bool:
    """Whether it runs; one that ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _left_by_jobs() -> list[int]:
    """What outlived its job: without cgroups Slurm loses sight of a process whose parent has ended."""
    mark, left = f"SLURM_CLUSTER_NAME={NAME}".encode(), []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes().split(b"\0"):
                left.append(int(environment.parent.name))
    return left


def _end(file: Path) -> None:
    process = _process(file)
    if process and _is_alive(process):
        os.kill(process, signal.SIGTERM)
        _wait_until(lambda: not _is_alive(process), f"{file.stem} does not end")


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]]()
