"""The configuration's settings at the paper's values."""

from pathlib import Path

from symbert.config import protocol_of
from symbert.project import read_config
from symbert.settings import GlueSettings, TaskSettings

ROOT = Path(__file__).parents[1]
PAPER = {"scale": "paper", "source": "hub"}


def task_settings() -> TaskSettings:
    """How the paper prepares rows."""
    return protocol_of(read_config(ROOT, PAPER), "glue", TaskSettings)


def finetuning_settings() -> GlueSettings:
    """The paper's protocol of fine-tuning."""
    return protocol_of(read_config(ROOT, PAPER), "glue", GlueSettings)
