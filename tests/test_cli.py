import json
import re
import subprocess
import sys

import pytest

from symbert import cli


def test_an_error_is_one_line_with_its_exit_code(tmp_path, capsys):
    options = {
        "state": tmp_path,
        "step": 1,
        "vocabulary": "v",
        "done": "d",
        "corpus-source": "embedded",
        "output": tmp_path / "o",
    }
    code = cli.main(["extract-checkpoint", *(word for key in options for word in (f"--{key}", str(options[key])))])
    assert code == 65
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and said[0].startswith("symbert extract-checkpoint: ") and "step 1 was not kept" in said[0]


@pytest.mark.parametrize(
    "arguments", [["--log"], ["write-settings"], [], ["import-scores", "--name", "theirs"], ["plan", "--sclae", "x"]]
)
def test_a_wrong_command_line_ends_with_64(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(cli.main(arguments))
    assert stop.value.code == 64
    assert capsys.readouterr().err


@pytest.mark.parametrize(("typed", "meant"), [("statsu", "status"), ("filter-prat", "filter-part")])
def test_a_typo_is_told_the_near_name(typed, meant, capsys):
    assert cli.main([typed]) == 64
    assert capsys.readouterr().err == f"symbert {typed}: no such command; did you mean '{meant}'?\n"


def help_of(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_help_lists_what_a_user_types_and_no_job_of_the_workflow(root, capsys):
    """51 commands were listed where a user types nine."""
    rules = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    typed, jobs = help_of(capsys, "--help"), help_of(capsys, "--help-jobs")
    for text, there, elsewhere in ((typed, cli.TYPED, cli.JOBS), (jobs, cli.JOBS, cli.TYPED)):
        listed = re.findall(r"^  ([a-z][\w-]+)  +\S", text, re.M)
        assert listed == list(there) and not {*there} & {*elsewhere}
    assert len(cli.TYPED) <= 14 and all(f" {job} " in rules for job in cli.JOBS)


def test_the_list_of_commands_imports_none_of_their_modules():
    program = "import sys; from symbert.cli import main\ntry: main(['--help'])\n"
    program += "except SystemExit: print(sorted({'torch', 'pandas', 'numpy', 'yaml'} & sys.modules.keys()))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


def test_a_list_of_files_may_be_a_file_of_their_names(tmp_path, capsys):
    """Names end with a NUL, so that they may hold anything else; a name in a list names no other list."""
    parts = [tmp_path / name for name in ("a b.json", "@c.json", "d\ne.json")]
    for number, part in enumerate(parts):
        part.write_text(json.dumps({"documents": 10**number, "tokens": 5}))
    names = tmp_path / "names"
    names.write_bytes(b"".join(bytes(part) + b"\0" for part in parts))
    output = tmp_path / "count.json"
    assert cli.main(["count-batch", "--records", f"@{names}", str(parts[0]), "--output", str(output)]) == 0
    assert json.loads(output.read_text()) == {"documents": 112, "tokens": 20}
    assert cli.main(["count-batch", "--records", "@none", "--output", str(output)]) == 65
    assert capsys.readouterr().err == "symbert count-batch: none: file not found\n"


def test_a_reader_who_has_seen_enough_is_no_bug(root):
    """`symbert status | head -n 1` said "internal error: BrokenPipeError"."""
    command = [sys.executable, "-m", "symbert", "status"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 65
