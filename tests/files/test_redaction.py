"""No message repeats the password of an address, wherever it was written by mistake."""

import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.console_command import main
from rehearsal_torch.data.trials.trial_store import FORMAT, campaign_of
from rehearsal_torch.files.redaction import InputError, beginning, without_password
from rehearsal_torch.user_error import UserError

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
TRIALS = {"graph": {"parents": {"a": [], "Y": ["a"]}}, "actions": {"a": [0, 1]}, "reward": "Y"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"no file {ADDRESS}: check it", "no file postgresql+psycopg://ana:***@host/db: check it"),
        ("/home/me/mysql:/ana:pw@h/db", "/home/me/mysql:/ana:***@h/db"),
        ("file 'redis://:p w@h' and me@x.org", "file 'redis://:***@h' and me@x.org"),
        (r"'db=redis://:p \' w@h', 'x@y'", r"'db=redis://:***@h', 'x@y'"),
        ("postgresql://ana@server:SECRET@host/x", "postgresql://ana@server:***@host/x"),
        ("redis:////ana:pw@h", "redis:////ana:***@h"),
        ("redis://:12345/pw@h", "redis://:***@h"),
        ("ab://u:12345@h:80/x", "ab://u:***@h:80/x"),
        ("got 'mysql://ana:long ...", "got 'mysql://ana:*** ..."),
        ("ab://u:p@h, or b1://u:q@h", "ab://u:***@h, or b1://u:***@h"),
        ("https://x.org:8080/path: write to me@x.org", "https://x.org:8080/path: write to me@x.org"),
        ("https://x.org:8080 and me@x.org, b1://u:p@h", "https://x.org:8080 and me@x.org, b1://u:***@h"),
        ("file:///C:/data/x.csv and mail me@x.org", "file:///C:/data/x.csv and mail me@x.org"),
        ("file:///C:/data/x@y.csv", "file:///C:/data/x@y.csv"),
        ("see https://x.org:a, or mail me@x.org", "see https://x.org:a, or mail me@x.org"),
        ("see https://x.org: or write to me@x.org", "see https://x.org: or write to me@x.org"),
        ("C:/a:b@c, 12:30, s3://bucket/key", "C:/a:b@c, 12:30, s3://bucket/key"),
        ("postgresql://ana@host:5432/db", "postgresql://ana@host:5432/db"),
    ],
)
def test_a_password_becomes_three_stars(text, told):
    assert without_password(text) == told
    assert str(InputError(text)) == told


def test_long_messages_take_no_longer_than_their_length():
    text = "ab://" + "x:" * 500 + "ab:/:" * 500 + " ab:/:" * 500
    assert without_password(text) == text
    text = "ab://x:y 'ab://x:y" * 500
    assert without_password(text) == text
    assert beginning(text, 5) == "ab://"


def test_a_value_is_cut_once_its_password_is_gone():
    assert beginning(f"redis://:{'p w' * 50}@host/db", 20) == "redis://:***@host/db"
    assert beginning(ADDRESS, 60) == ADDRESS
    assert beginning(f"{ADDRESS}/{'x' * 60}", 45) == "postgresql+psycopg://ana:***@host/db/xxxxxxxx"


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


# A user of a host, behind four slashes, and a password that is longer than what is shown of a value.
LONG = f"postgresql:////ana@server:s3cr3t/{'w@rd' * 40}@host/x"


@pytest.mark.parametrize("address", [ADDRESS, LONG], ids=["plain", "long"])
@pytest.mark.parametrize(
    "call",
    [
        lambda it: rt.rehearse(it, TASK, [{"x": 1.0}]),
        lambda it: rt.rehearse({"x": [1.0]}, it, [{"x": 1.0}]),
        lambda it: rt.rehearse({"x": [1.0]}, TASK, it),
        lambda it: rt.rehearse({"x": [1.0]}, TASK, [{"x": 1.0}], method=it),
        lambda it: rt.rehearse({"x": [1.0]}, TASK, [{"x": 1.0}], seed=it),
        lambda it: rt.load(it),
        lambda it: rt.CausalOptimiser(TASK, file=it),
        lambda it: rt.CausalOptimiser(TRIALS, seed=it),
        lambda it: rt.CausalOptimiser(TRIALS).tell(it, {"Y": 1.0}),
        lambda it: rt.CausalOptimiser(TRIALS).tell({"a": it}, {"Y": 1.0}),
        lambda it: rt.CausalOptimiser(TRIALS).tell({it: 1}, {"Y": 1.0}),
        lambda it: rt.CausalOptimiser(TRIALS).tell({"a": 0.5}, it),
        lambda it: rt.CausalOptimiser(TRIALS).tell({"a": 0.5}, {"Y": it}),
        lambda it: rt.CausalOptimiser(TRIALS).tell({"a": 0.5}, {"Y": 1.0}, altered=[it]),
        lambda it: campaign_of({"format": f"rehearsal-trials/{it}"}, "t.json"),
        lambda it: campaign_of(
            {"format": FORMAT, "task": {}, "seed": it, "initial": 4, it: 1, "trials": [{"id": it}]}, "t"
        ),
        lambda it: rt.Table.from_frame(pd.DataFrame({"x": [it, "b", "c"]})),
        lambda it: rt.Table.from_frame(pd.DataFrame({"x": [it]}), [it]),
    ],
)
def test_no_call_gives_it_away(call, address):
    with pytest.raises((InputError, UserError)) as error:
        call(address)
    assert not [part for part in ("w@rd", "s3cr3t") if part in str(error.value)]
