"""What each option of a command that people type means, in a line: `--help` of the command shows it.

A name means the same in every command, unless that command is named.
"""

OPTIONS: dict[str, str] = {
    "scale": "name of a scale, or a file of one's own; stands for --config scale=…",
    "configfile": "files of settings above config.yaml, as Snakemake takes them",
    "config": "settings above all files, as key=value",
    "output": "file to write",
    "checkpoint": "Hugging Face folder of a pre-trained model",
    "manifest": "manifest.json of the packed corpus",
    # The experiment as a whole.
    "status name": "experiment as it was started last: a folder below results/",
    "surplus_weights": "also weights of finished runs that were kept of steps that nothing asks for",
    "yes": "remove; without it, only say what would go",
    "bundle results": "experiment by the name or the folder of its results",
    "bundle output": "archive to write (.zip)",
    "results": "experiments and imports by name or folder, or csv files of others' scores",
    # Corpus.
    "directory": "folder of the mirror; made where it does not exist",
    "split": "train or validation",
    "row": "number of the row, from 0",
    # Models and operators.
    "to": "form of the model: bert",
    "export output": "folder to write, new or empty",
    "checkpoints": "Hugging Face folders of pre-trained models",
    "anatomy manifest": "manifest.json of a corpus whose rows are read; without it, rows are random",
    "with_start": "also the model before its first step",
    "operators": "operators by name, or as my_module:Class",
    "operator": "operator by name, or as my_module:Class",
    "arguments": "arguments of the operator's class, as JSON",
    "weights": "weights that glue.keep_finetuned kept (.safetensors)",
    "export-classifier output": "folder to write, new or empty",
    # Scores and the report.
    "path": "csv file of scores, a row each",
    "name": "name of the import: results/<name>",
    "losses": "csv file of validation losses, a row each",
    "steps": "steps of pre-training; without it, the last step in the files",
    "score": "score whose differences are shown",
    "reference": "model that the others are compared with; without it, the first one",
    "compare output": "files to write, too: .csv, .md, .tex or .html",
}


def line_of(command: str, parameter: str) -> str:
    """What the parameter of a command means; KeyError where no line says it."""
    return OPTIONS.get(f"{command} {parameter}") or OPTIONS[parameter]
