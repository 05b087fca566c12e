"""Writes rows of the hub as GLUE's archives hold them: columns and their order are those of the published files."""

PARSES = "sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
ANNOTATORS = "label1 label2 label3 label4 label5"
HEADERS = {
    "SST-2": "sentence label",
    "QQP": "id qid1 qid2 question1 question2 is_duplicate",
    "STS-B": "index genre filename year old_index source1 source2 sentence1 sentence2 score",
    "MNLI": f"index promptID pairID genre {PARSES} sentence1 sentence2 {ANNOTATORS} gold_label",
    "QNLI": "index question sentence label",
    "RTE": "index sentence1 sentence2 label",
    "WNLI": "index sentence1 sentence2 label",
}
FOLDERS = {folder.lower().replace("-", ""): folder for folder in HEADERS}
RENAMED = {"premise": "sentence1", "hypothesis": "sentence2", "label": ("is_duplicate", "score", "gold_label", "label")}


def write_originals(root, task, splits):
    """The files of a task; `splits` gives each split's rows in the hub's columns."""
    write = {"cola": _write_cola, "mrpc": _write_mrpc}.get(task.name, _write_with_header)
    write(root, task, splits)


def write_lines(path, *lines):
    """A file of lines of tab-separated fields, which end as given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(lines).encode())


def _write_with_header(root, task, splits):
    folder = FOLDERS[task.name]
    header = HEADERS[folder].split()
    for split, rows in splits.items():
        lines = ["\t".join(header) + "\n"]
        for row in rows:
            named = {RENAMED.get(name, name): value for name, value in row.items() if name != "label"}
            named |= dict.fromkeys(RENAMED["label"], _label(task, row["label"]))
            lines.append("\t".join(str(named.get(name, "none")) for name in header) + "\n")
        write_lines(root / folder / _file(split), *lines)


def _label(task, label):
    if not task.labels:
        return f"{label:.3f}"
    return task.labels[label] if task.name in ("mnli", "qnli", "rte") else label


def _file(split):
    return split.replace("validation", "dev") + ".tsv"


def _write_cola(root, task, splits):
    for split, rows in splits.items():
        marks = ("*", "")
        lines = [f"gj04\t{row['label']}\t{marks[row['label']]}\t{row['sentence']}\n" for row in rows]
        write_lines(root / "CoLA" / _file(split), *lines)


def _write_mrpc(root, task, splits):
    """As Microsoft gives it, with GLUE's list of the pairs of the evaluation split."""
    rows = sorted((row for split in splits.values() for row in split), key=lambda row: row["idx"])
    lines = [
        f"{row['label']}\t{row['idx']}\t{9 * row['idx']}\t{row['sentence1']}\t{row['sentence2']}\r\n" for row in rows
    ]
    write_lines(root / "MRPC/msr_paraphrase_train.txt", "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n", *lines)
    write_lines(root / "MRPC/dev_ids.tsv", *(f"{row['idx']}\t{9 * row['idx']}\n" for row in splits["validation"]))
