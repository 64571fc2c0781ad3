"""The console command: verbs, the data file, and what it says to somebody who types something else."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from rehearsal_torch.cli import main as command_line
from rehearsal_torch.console_command import VERBS, main, with_file
from rehearsal_torch.user_error import UserError
from tests.places import ROOT
from tests.scripts.typing_in import surroundings

PAGE = ROOT / "docs" / "command_line.md"


@pytest.fixture(autouse=True)
def started(monkeypatch, tmp_path):
    """Started as `rehearsal`, in an empty folder."""
    monkeypatch.setattr(sys, "argv", ["rehearsal"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ended(arguments):
    """The exit code; Hydra and argparse end the process once they have printed their help."""
    try:
        return main(arguments)
    except SystemExit as error:
        return error.code


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_lists_every_verb_with_an_example(capsys, arguments):
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, chosen_verb in VERBS.items():
        place = next(number for number, line in enumerate(lines) if line.split()[:1] == [name])
        assert lines[place].endswith(chosen_verb.summary)
        assert chosen_verb.summary.endswith(".")
        assert lines[place + 1].strip() == f"rehearsal {name} {chosen_verb.example}"


@pytest.mark.parametrize(("verb", "key"), [("check", "problem"), ("decide", "path"), ("init", "data")])
def test_a_file_that_exists_is_a_file_with_a_sign_in_its_name_too(started, verb, key):
    folder = started / "path=b"
    folder.mkdir()
    (folder / "table.csv").write_text("a,b\n1,2\n")
    read = with_file(verb, ["path=b/table.csv", "seed=1"], key)
    quoted = "'path=b/table.csv'" if key == "path" else "path=b/table.csv"
    assert read == [f"{key}={quoted}", "seed=1"]
    assert with_file(verb, ["path=c/table.csv"], key) == [f"{key}=c/table.csv"]


def test_scripts_and_verbs_are_the_same():
    scripts = {path.stem for path in (ROOT / "scripts").glob("*.py")}
    assert scripts == {name.replace("-", "_") for name in VERBS} - {"options"}


def test_the_overview_and_slips_import_nothing_heavy():
    code = "import sys\nfrom rehearsal_torch.console_command import main\n"
    code += "assert main([]) == 0 and main(['trian']) == 2 and main(['decide', 'a.csv', 'b.csv']) == 2\n"
    code += (
        "print(sorted({'torch', 'lightning', 'pandas', 'hydra', 'omegaconf', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=surroundings(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_who_has_read_enough_is_no_error():
    code = "import sys\nfrom rehearsal_torch.console_command import main\nsys.exit(main(['--help']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=surroundings(),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_version(capsys):
    from rehearsal_torch import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rehearsal {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "rehearsal trian: there is no such verb. Did you mean train?"),
        (["report", "nowhere"], "nowhere: there is no such folder."),
    ],
)
def test_a_slip_is_answered_in_a_sentence(started, capsys, arguments, words):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert (told.out, len(told.err.strip().splitlines())) == ("", 1)
    assert list(started.iterdir()) == [], "nothing was written"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("train", "rehearsal train path=problem.yaml"),
        ("decide", "rehearsal decide resume=my/folder"),
        ("init", "Usage: rehearsal init data=DATA"),
        ("check", "Usage: rehearsal check"),
        ("cross-validate", "-m sweeps over comma-separated values"),
        ("collect", "Usage: rehearsal collect FOLDER"),
        ("report", "Usage: rehearsal report RUN [RUN ...] [key=value ...]"),
        ("learn-graph", "Usage: rehearsal learn-graph data=DATA"),
        ("prepare", "Usage: rehearsal prepare VERB key=value"),
        ("options", "Usage: rehearsal options"),
    ],
)
def test_every_verb_has_a_help(capsys, verb, words):
    assert ended([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert "scripts/" not in out


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["table.csv", "seed=1"], ["path=table.csv", "seed=1"]),
        (["/data/a_b/table-1.csv.gz"], ["path=/data/a_b/table-1.csv.gz"]),
        (["../table.csv"], ["path='../table.csv'"]),
        (["null"], ["path='null'"]),
        (["2024.5"], ["path='2024.5'"]),
        (["my 'own', table.csv"], ["path='my \\'own\\', table.csv'"]),
        ([r"C:\data\table.csv"], [r"path='C:\data\table.csv'"]),
        (["seed=1", "table.csv"], ["seed=1", "table.csv"]),
        (["-m", "seed=0,1"], ["-m", "seed=0,1"]),
        (["-m", "table.csv", "seed=0,1"], ["-m", "path=table.csv", "seed=0,1"]),
        (["table.csv", "--multirun", "seed=0,1"], ["-m", "path=table.csv", "seed=0,1"]),
        (["+experiment=auf"], ["+experiment=auf"]),
        (["~logger"], ["~logger"]),
        ([], []),
    ],
)
def test_the_first_word_may_be_a_file(typed, read):
    assert with_file("decide", typed, "path") == read


def test_a_problem_file_is_the_file_of_its_experiment_and_of_the_check():
    assert with_file("decide", ["problem.yaml", "+experiment=own_problem"], "path") == [
        "path=problem.yaml",
        "+experiment=own_problem",
    ]
    assert with_file("check", ["my problem.yaml"], "problem") == ["problem=my problem.yaml"]
    # A slip in the name is answered where the experiments are looked up.
    assert with_file("decide", ["problem.yaml", "+experiment=own_problm"], "path") == [
        "path=problem.yaml",
        "+experiment=own_problm",
    ]


def test_a_yaml_file_that_is_no_problem_file_is_refused(tmp_path):
    task = tmp_path / "task.yaml"
    task.write_text("graph: [a -> b]\nbox: {a: [0, 1]}\n")
    with pytest.raises(UserError, match=r"is a YAML file\. A problem file is decided by rehearsal decide"):
        with_file("decide", [str(task)], "path")
    task.write_text("question: trials\nvariables: {a: action}\n")
    assert with_file("decide", [str(task)], "path") == [f"path={task}"]


@pytest.mark.parametrize("typed", ["path=my problem.yaml", "problem=my problem.yaml", "data=my problem.yaml"])
def test_a_file_is_read_under_the_key_of_any_verb(typed):
    assert with_file("check", [typed], "problem") == ["problem=my problem.yaml"]
    assert with_file("init", [typed, "out=b.yaml"], "data") == ["data=my problem.yaml", "out=b.yaml"]
    read = typed if typed.startswith("path=") else "path='my problem.yaml'"
    assert with_file("decide", [typed], "path") == [read]


def test_a_learnt_graph_reads_its_own_key():
    assert with_file("learn-graph", ["my table.csv", "seed=1"], "data") == ["data=my table.csv", "seed=1"]


def blocks():
    """The lines of the page that begin with `rehearsal`, as somebody would type them."""
    text = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    return [
        shlex.split(line, comments=True)[1:]
        for line in text.splitlines()
        if line.strip().startswith("rehearsal")
    ]


def test_the_page_shows_every_verb():
    assert {line[0] for line in blocks() if line and not line[0].startswith("-")} == set(VERBS)


@pytest.mark.slow
@pytest.mark.parametrize("line", blocks(), ids=" ".join)
def test_what_the_page_shows_can_be_typed(started, monkeypatch, capsys, line):
    for name in ("table.csv", "task.yaml", "cases.csv", "experiments.csv", "problem.yaml"):
        (started / name).write_text("")
    (started / "checkpoints").symlink_to(ROOT / "checkpoints")
    handed = []
    monkeypatch.setattr(command_line, "_hand_over", lambda task, arguments: handed.append(task.__name__))
    monkeypatch.setattr("rehearsal_torch.cli.verbs.collect.finish", lambda *_: 0)
    if (
        line
        and line[0] in ("train", "decide", "cross-validate")
        and "--help" not in line
        and not any(text.startswith("resume=") for text in line)
    ):
        assert main(line) == 0, capsys.readouterr().err
        assert handed == [line[0].replace("-", "_")]
    elif not line or line[0] == "options" or line[0].startswith("-"):
        assert main(line) == 0
    else:
        # What works on files that are not here: the verb exists, and its help can be read.
        assert ended([line[0], "--help"]) == 0


def test_the_help_of_deciding_begins_with_a_problem_file(capsys):
    assert ended(["decide", "--help"]) == 0
    out = capsys.readouterr().out
    first, _, groups = out.partition("Groups (group=option")
    assert len(first.splitlines()) < 30
    assert "decide path=problem.yaml" in first
    assert "options path=problem.yaml" in first
    assert "branch_and_bound" in groups
    assert "paO2" not in out
