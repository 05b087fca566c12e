"""One model that two nodes train together, and what happens to the second of them. `make test-slurm`."""

import signal

from campaigns.slurm import cluster
from campaigns.slurm.copies import ON_SLURM, adapt, snakemake, working_copy
from campaigns.slurm.jobs import PATIENCE, Training, ask, job, wait_until
from campaigns.slurm.story import hold, trainings_of, waits_for_node

SHARED = ("--until", "pretrain", "--config", "sweep={attention: [shared]}")


def test_a_training_on_two_nodes_outlives_a_drained_and_a_lost_one_and_ends_with_the_same_bytes(root, tmp_path):
    directory, undisturbed = (working_copy(root, tmp_path / name) for name in ("two nodes", "undisturbed"))
    adapt(directory, slurm_partition="pair", gpu=0)
    on_two_nodes = (*ON_SLURM, *SHARED, "pretrain={processes: 2, nodes: 2}")
    training = Training(directory, "shared")
    with snakemake(undisturbed, "--cores", "2", *SHARED, "pretrain={processes: 2}") as other:
        with snakemake(directory, *on_two_nodes) as process:
            hold([training], process)
            assert job(training.job)["NodeList"] == "first,second" and job(training.job)["NumTasks"] == "2"
            ask("scontrol", "update", "NodeName=second", "State=DRAIN", "Reason=test")
            training.go_on()
            ask("scancel", "--signal=USR1", training.job)
            wait_until(lambda: waits_for_node(training.job), lambda: f"does not wait: {job(training.job)}")
            ask("scontrol", "update", "NodeName=second", "State=RESUME")
            training = training.next_session()
            hold([training], process)
            cluster.lose_node("second")
            training.go_on()
            wait_until(lambda: job(training.job)["Restarts"] == "2", lambda: f"not requeued: {job(training.job)}")
            cluster.start_node("second")
            training = training.next_session()
            hold([training], process)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) != 0
        wait_until(lambda: job(training.job)["JobState"] == "CANCELLED", lambda: str(job(training.job)))
        assert [told["JobId"] for told in trainings_of("shared")] == [training.job], "one attempt"
        assert not (training.folder / "done.json").exists()
        with snakemake(directory, *on_two_nodes) as process:
            assert process.wait(PATIENCE) == 0
        assert other.wait(PATIENCE) == 0
    alone = Training(undisturbed, "shared").folder
    for file in ("metrics.jsonl", "state/weights/step-00000300.safetensors"):
        assert (training.folder / file).read_bytes() == (alone / file).read_bytes(), file
