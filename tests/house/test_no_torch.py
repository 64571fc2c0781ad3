"""What a check or a first draft of a file loads: no torch, which takes longer than all the rest."""

import subprocess
import sys

import pytest

TABLE = "x,a,y\n" + "".join(f"{place % 7},{place % 3},{place % 5}\n" for place in range(60))
PROBLEM = """
data: table.csv
variables: {x: context, a: {role: action, range: [0, 2]}, y: outcome}
graph: [x -> a, x -> y, a -> y]
desired: y <= 2
"""
EPISODES = "pump,day,wear,oil\n" + "".join(
    f"{pump},{day},{(pump * day) % 9},{(pump + day) % 4}\n" for pump in range(40) for day in range(5)
)
SEQUENCE = """
question: sequence
data: episodes.csv
unit: pump
time: day
variables: {wear: state, oil: {role: action, unit: l}}
reward: {weights: {wear: -1}}
"""
EXPERIMENTS = "valve,dose,heat,output\n" + "".join(
    f"{place % 4 / 4},{place % 3},{place % 7},{(place * place) % 11}\n" for place in range(12)
)
TRIALS = """
question: trials
data: experiments.csv
variables:
  valve: {role: action, range: [0, 1]}
  dose: {role: action, levels: [0, 1, 2]}
  heat: other
  output: outcome
graph: [valve -> heat, heat -> output, dose -> output]
reward: output
fixed: {dose: 1}
"""
LOADED = (
    "import sys; from rehearsal_torch.console_command import main; "
    "sys.argv = ['rehearsal', *sys.argv[1:]]; code = main(); "
    "assert not code, code; print('torch' in sys.modules)"
)


@pytest.mark.parametrize(
    "typed",
    [
        ["check", "problem.yaml"],
        ["check", "sequence.yaml"],
        ["check", "trials.yaml"],
        ["check", "begun.yaml"],
        ["init", "table.csv", "out=draft.yaml"],
    ],
)
def test_files_are_checked_and_drafted_without_torch(tmp_path, typed):
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "problem.yaml").write_text(PROBLEM)
    (tmp_path / "episodes.csv").write_text(EPISODES)
    (tmp_path / "sequence.yaml").write_text(SEQUENCE)
    (tmp_path / "experiments.csv").write_text(EXPERIMENTS)
    (tmp_path / "trials.yaml").write_text(TRIALS)
    (tmp_path / "begun.yaml").write_text(TRIALS.replace("data: experiments.csv\n", ""))
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *typed], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "False"
