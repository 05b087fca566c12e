"""The configuration's settings at the paper's values, but for all nine GLUE tasks."""

from pathlib import Path
from typing import Any

import yaml

from symbert.config import sections
from symbert.settings import GlueSettings, settings_from
from symbert.tasks import GLUE

ROOT = Path(__file__).parents[1]


def paper_sections() -> dict[str, dict[str, Any]]:
    """What each group of rules would read, by section."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["sweep"]["tasks"] = list(GLUE)
    return sections(config)


def finetuning_settings() -> GlueSettings:
    """The paper's protocol of fine-tuning."""
    return settings_from(paper_sections()["glue"], GlueSettings, "config.yaml")
