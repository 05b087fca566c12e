"""The configuration's settings at the paper's values."""

from pathlib import Path

from symbert.configuration import GlueSettings, TaskSettings, protocol_of
from symbert.project import read_config

ROOT = Path(__file__).parents[1]
PAPER = {"scale": "paper", "source": "hub"}


def task_settings() -> TaskSettings:
    """How the paper prepares rows."""
    return protocol_of(read_config(ROOT, PAPER), "glue", TaskSettings)


def finetuning_settings() -> GlueSettings:
    """The paper's protocol of fine-tuning."""
    return protocol_of(read_config(ROOT, PAPER), "glue", GlueSettings)
