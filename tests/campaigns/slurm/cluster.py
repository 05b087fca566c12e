"""A Slurm of two nodes on loopback, with GPUs that are only device files: `python -m campaigns.slurm.cluster`, as root.

`run COMMAND` runs a command beside it, `stop` ends what a killed run left. Both end with another code than 0, and the
reason, where nothing was done. Everything lies in HOME, but for two links in
/etc/slurm, where Slurm's commands look for their configuration. The GPUs are the null device under other names: Slurm
counts them and deals them out. The second node is another slurmd on this machine, and in the partition `pair` alone.
"""

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "symbert-tests"  # of the cluster
HOME = Path("/var/lib/symbert-slurm")
LOCK = Path("/run/lock/symbert-slurm")
LINKS = [Path("/etc/slurm/slurm.conf"), Path("/etc/slurm/gres.conf")]
FETCHED = Path("/run/slurm/conf")  # where a node without files of its own keeps its configuration
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
NODES = ("first", "second")
DAEMONS = (*(f"slurmd.{node}" for node in NODES), "slurmctld", "munged")  # in the order in which they stop
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that end a run
CPUS, MEMORY, GPUS = 8, 64_000, 2  # of a node, MB; Slurm believes it

LIMIT = 540  # seconds of a command
PATIENCE = 45  # seconds in which a daemon comes up or jobs end; longer than KillWait
ANSWER = 15  # seconds of a question; the controller's absence takes 9
GRACE = 10  # seconds in which a daemon ends before it is killed

# A job that was sent back waits as long as its credential lives: cred_expire, by default two minutes.
CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
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
SlurmdTimeout=20
MinJobAge=3600
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.%n.log
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool.%n
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
NodeName=first NodeHostname={host} NodeAddr=127.0.0.1 Port={first_port}
NodeName=second NodeHostname={host} NodeAddr=127.0.0.1 Port={second_port}
PartitionName=DEFAULT MaxTime=1-0 State=UP
PartitionName=main Nodes=first Default=YES
PartitionName=gpu Nodes=first
PartitionName=urgent Nodes=first PriorityTier=2
PartitionName=pair Nodes=first,second
"""


def main(action: str, *command: str) -> int | str | None:
    """Exit code of what is done, or why nothing is."""
    if os.geteuid():
        return "a Slurm needs root to start"
    with _alone() as alone:
        if not alone:
            return "another test of Slurm goes on"
        stop()  # what a killed run left: this is the only one
        if action == "stop":
            return None
        signs = signs_of_slurm()
        if signs:
            return f"this machine has a Slurm of its own: {', '.join(signs)}"
        return run(*command)


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether no other process does this here, held against others meanwhile."""
    with open(LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def signs_of_slurm() -> list[str]:
    """What tells that this machine belongs to a Slurm, which a test must not touch."""
    signs = ["SLURM_CONF is set"] if "SLURM_CONF" in os.environ else []
    signs += [f"{path} exists" for path in (*LINKS, FETCHED) if path.exists() or path.is_symlink()]
    running = {_name(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    return signs + [f"{name} runs" for name in ("slurmctld", "slurmd", "slurmdbd") if name in running]


def run(*command: str) -> int | str:
    """The exit code of a command beside which Slurm runs, 137 past LIMIT; Slurm is stopped however it ends."""
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        return f"no {', '.join(missing)} here: apt-get install --no-install-recommends slurm-wlm munge"
    for number in SIGNALS[1:]:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        start()
        return _run_within_limit(*command)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        stop()


def _run_within_limit(*command: str) -> int:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        print(f"killed after {LIMIT} s: {' '.join(command)}\n{_logs()}", file=sys.stderr)
        return 137
    finally:
        with suppress(ProcessLookupError):  # what it started ends with it
            os.killpg(process.pid, signal.SIGKILL)


def start() -> None:
    """Start the daemons and wait until the node takes jobs; RuntimeError when it does not."""
    host = socket.gethostname().partition(".")[0]
    _write_files(host)
    munge = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "munge.seed"}
    daemon = {"pid-file": "munged.pid", "log-file": "munged.log"}
    _launch("munged", "--force", *(f"--{option}={HOME / name}" for option, name in {**munge, **daemon}.items()))
    _launch("slurmctld")
    for node in NODES:
        start_node(node)
    ask = ("sinfo", "-h", "-N", "-p", "pair", "-o", "%T")
    _expect(lambda: _answer(*ask).split() == ["idle"] * len(NODES), "not all nodes are idle")


def stop() -> None:
    """End the jobs and the daemons, killed where they must be, and remove what `start` wrote: within 140 seconds."""
    if _process("slurmctld"):
        _answer("scancel", "--user=root")
        _comes_true(lambda: not _answer("squeue", "-h"), PATIENCE)  # else their processes are killed below
    for daemon in DAEMONS:
        _end(daemon)
    for process in _with_variables(f"SLURM_CLUSTER_NAME={NAME}"):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for link in LINKS:
        if link.is_symlink() and link.readlink().parent == HOME:
            link.unlink()
    shutil.rmtree(HOME, ignore_errors=True)


def restart_controller() -> None:
    """End the controller as an update of Slurm does, and start it again; its jobs go on meanwhile."""
    _end("slurmctld")
    _launch("slurmctld")
    _expect(lambda: bool(_answer("squeue", "-h")), "the controller lists no jobs")


def start_node(node: str) -> None:
    """Start the daemon of a node."""
    _launch("slurmd", "-N", node, named=f"slurmd.{node}")


def lose_node(node: str) -> None:
    """Kill the daemon of a node and all processes of its jobs at once, as when its power fails."""
    tasks = _with_variables(f"SLURM_CLUSTER_NAME={NAME}", f"SLURMD_NODENAME={node}")
    steps = {_name_and_parent(task)[1] for task in tasks}
    steps = {process for process in steps if _name(process) == "slurmstepd"}
    _end(f"slurmd.{node}", signal.SIGKILL)
    for process in (*steps, *tasks):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _write_files(host: str) -> None:
    for folder in (HOME, HOME / "state", *(HOME / f"spool.{node}" for node in NODES)):
        folder.mkdir(mode=0o755)
    key = HOME / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    ports = dict(zip(("controller_port", "first_port", "second_port"), _free_ports(3), strict=True))
    facts = {"name": NAME, "host": host, "home": HOME, "cpus": CPUS, "memory": MEMORY, "gpus": GPUS, **ports}
    (HOME / "slurm.conf").write_text(CONFIGURATION.format(**facts))
    (HOME / "gres.conf").write_text(f"Name=gpu File={HOME}/gpu[0-{GPUS - 1}]\n")
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


def _launch(daemon: str, *options: str, named: str = "") -> None:
    done = subprocess.run([daemon, *options], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{daemon} does not start: {done.stderr.strip() or done.stdout.strip()}")
    _expect(lambda: _process(named or daemon) is not None, f"no process of {daemon}")


def _answer(*command: str) -> str:
    """What a command prints about this cluster, whatever SLURM_CONF says; nothing when it fails or takes too long."""
    environment = {**os.environ, "SLURM_CONF": str(HOME / "slurm.conf")}
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER, env=environment).stdout.strip()
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return ""


def _expect(holds: Callable[[], bool], otherwise: str) -> None:
    if not _comes_true(holds, PATIENCE):
        raise RuntimeError(f"{otherwise} after {PATIENCE} s\n{_logs()}")


def _comes_true(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _logs() -> str:
    """The ends of all logs in HOME: those of the daemons, and of what the tests run."""
    texts = {path.name: path.read_text(errors="replace") for path in sorted(HOME.glob("*.log"))}
    return "\n".join(f"== {name}\n{text[-6000:]}" for name, text in texts.items())


def _name(process: int) -> str | None:
    """The name of a process, as in `/proc/…/comm`; None when it has ended, also where nobody waited for it."""
    return _name_and_parent(process)[0]


def _name_and_parent(process: int) -> tuple[str | None, int]:
    try:
        told = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None, 0
    name, _, rest = told.partition("(")[2].rpartition(")")
    state, parent = rest.split()[:2]
    return None if state == "Z" else name, int(parent)


def _process(daemon: str) -> int | None:
    """A daemon's process, by its file; None where it has ended, also if another process has its number now."""
    try:
        process = int((HOME / f"{daemon}.pid").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return process if _name(process) == daemon.partition(".")[0] else None


def _end(daemon: str, *signals: int) -> None:
    for number in signals or (signal.SIGTERM, signal.SIGKILL):
        if process := _process(daemon):
            os.kill(process, number)
            _comes_true(lambda: _name(process) is None, GRACE)


def _with_variables(*variables: str) -> list[int]:
    """The processes that have these in their environment. Those of our jobs are found by it when they outlive their
    job: without cgroups Slurm loses sight of a process whose parent has ended."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if {*map(str.encode, variables)} <= {*environment.read_bytes().split(b"\0")}:
                found.append(int(environment.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
