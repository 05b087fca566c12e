"""What Linux allows of the workflow's commands."""

import re

import pytest

from symbert.operators import OPERATORS

LONGEST_COMMAND = 4_000  # characters: a command names a file or a folder, not what it reads
ALL = ", ".join(OPERATORS)


@pytest.mark.campaign
def test_no_command_of_the_largest_sweep_is_long(checkout):
    """All operators, three pre-training seeds, 18 checkpoints of each, 8 tasks."""
    sweep = f"sweep={{sizes: [base], attention: [{ALL}], pretrain_seeds: [1, 2, 3]}}"
    settings = ("scale=paper", "source=hub", "corpus={parts: 300}", sweep)
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--config", *settings)
    assert outcome.code == 0, outcome.output[-2000:]
    commands = re.findall(r"-m symbert --log .*", outcome.output)
    assert len(commands) > 1_000 and max(map(len, commands)) < LONGEST_COMMAND
