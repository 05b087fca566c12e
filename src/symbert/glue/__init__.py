"""The GLUE tasks, their metrics, and the fine-tuning protocol."""
