"""A short protocol of fine-tuning."""

from symbert.settings import GlueSettings

SETTINGS = GlueSettings(
    epochs=2,
    batch_size=16,
    learning_rate=1e-3,
    warmup_ratio=0.1,
    weight_decay=0.0,
    adam_epsilon=1e-8,
    gradient_clip=1.0,
    dropout=0.1,
    precision="fp32",
    recipe="faithful",
)
