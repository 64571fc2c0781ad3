"""No message repeats the password of an address, wherever it was written by mistake."""

import pytest

import rehearsal_torch as rt
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.files.addresses import InputError, without_password
from rehearsal_torch.program import main

WORD = "s3cr3t/w@rd"
ADDRESS = f"postgresql+psycopg://ana:{WORD}@host/db"
REST = """
variables: {x: context, a: {role: action, range: [0, 2]}, y: outcome}
graph: [x -> a, x -> y, a -> y]
desired: y >= 2
"""
TASK = {
    "graph": {"parents": {"a": ["x"], "y": ["x", "a"]}},
    "context": ["x"],
    "box": {"a": [0, 2]},
    "region": {"y": [2, None]},
}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"no file {ADDRESS}: check it", "no file postgresql+psycopg://ana:***@host/db: check it"),
        ("/home/me/mysql:/ana:pw@h/db", "/home/me/mysql:/ana:***@h/db"),
        ("redis://:p w@h", "redis://:***@h"),
        ("got 'mysql://ana:long ...", "got 'mysql://ana:*** ..."),
        ("a://u:p@h, or b1://u:p@h", "a://u:p@h, or b1://u:***@h"),
        ("see https://x.org: or write to me@x.org", "see https://x.org: or write to me@x.org"),
        ("C:/a:b@c, 12:30, s3://bucket/key", "C:/a:b@c, 12:30, s3://bucket/key"),
        ("postgresql://ana@host:5432/db", "postgresql://ana@host:5432/db"),
    ],
)
def test_a_password_becomes_three_stars(text, told):
    assert without_password(text) == told
    assert str(InputError(text)) == told


def test_long_messages_take_no_longer_than_their_length():
    text = "ab://" + "x:" * 100_000 + "ab:/:" * 100_000 + " ab:/:" * 100_000
    assert without_password(text) == text


def test_errors_of_commands_hide_it_too():
    assert str(UserError("is a file", f"out={ADDRESS}")) == (
        "out=postgresql+psycopg://ana:***@host/db: is a file."
    )


@pytest.mark.parametrize(
    "data",
    [
        f'data: "{ADDRESS}"',
        f'data: {{file: "{ADDRESS}"}}',
        f'data: {{"{ADDRESS}": t.csv}}',
        f'data: {{file: t.csv, "{ADDRESS}": 1}}',
        f'data: {{file: t.csv, sheet: "{ADDRESS}"}}',
        f'data: ["{ADDRESS}"]',
        f'data: t.csv\ncases: {{file: "{ADDRESS}"}}',
        f'data: t.csv\n"{ADDRESS}": 1',
        f'data: t.csv\nmissing: "{ADDRESS}"',
        f"data: {ADDRESS}: x: [",
    ],
)
def test_no_problem_file_gives_it_away(data, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,a,y\n1,0,2\n2,1,3\n")
    (tmp_path / "problem.yaml").write_text(data + REST)
    assert main(["check", str(tmp_path / "problem.yaml")]) == 2
    said = capsys.readouterr()
    assert "w@rd" not in said.out + said.err


@pytest.mark.parametrize(
    "typed",
    [
        ["decide", ADDRESS],
        ["decide", f"dataset={ADDRESS}"],
        ["decide", f"+{ADDRESS}=1"],
        ["check", f"{ADDRESS}=1"],
        ["init", f"data={ADDRESS}"],
        ["report", ADDRESS],
        ["learn-graph", ADDRESS],
    ],
    ids=lambda typed: typed[0],
)
def test_no_command_line_gives_it_away(typed, capsys):
    assert main(typed) == 2
    said = capsys.readouterr()
    assert "w@rd" not in said.out + said.err


@pytest.mark.parametrize(
    "call",
    [
        lambda: rt.rehearse(ADDRESS, TASK, [{"x": 1.0}]),
        lambda: rt.rehearse({"x": [1.0]}, ADDRESS, [{"x": 1.0}]),
        lambda: rt.rehearse({"x": [1.0]}, TASK, ADDRESS),
        lambda: rt.rehearse({"x": [1.0]}, TASK, [{"x": 1.0}], method=ADDRESS),
        lambda: rt.load(ADDRESS),
        lambda: rt.CausalOptimiser(TASK, file=ADDRESS),
    ],
)
def test_no_call_gives_it_away(call):
    with pytest.raises(InputError) as error:
        call()
    assert "w@rd" not in str(error.value)
