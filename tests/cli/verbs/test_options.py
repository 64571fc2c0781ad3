"""Every option of every experiment is listed, with a value, a type and a meaning."""

import pytest
from omegaconf import OmegaConf

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.verbs.options import Knob, comments, main, nodes, shown, table
from rehearsal_torch.console_command import main as program
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.user_error import UserError
from tests.scripts.typing_in import HERE


def test_what_is_printed(capsys):
    assert main(["+experiment=cbo", "decision=ucb", "seed=7", "dataset.noise.sigma=0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    by_key = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert lines[0] == "The run"
    assert "dataset=dropwave  rehearsal_torch.problems.trials.benchmark_functions.Dropwave" in lines
    assert by_key["learn"].split()[:5] == ["learn", "true", "true", "or", "false"]
    assert by_key["learn"].endswith("Needs a world."), "the experiment sets it, and config.yaml explains it"
    assert "0.3" in by_key["dataset.noise.sigma"]
    assert "7 = ${seed}" in by_key["dataset.seed"]
    assert by_key["dataset.scale"].endswith("lambda of the paper: 1, 2 or 3."), "the comment of the YAML file"
    assert by_key["dataset.noise.sigma"].endswith("The noise level."), "the docstring of the class"
    assert "whole number or null" in by_key["dataset.size.initial"]
    columns = {
        line.index(kind)
        for line, kind in (
            (by_key["seed"], "whole"),
            (by_key["dataset.scale"], "number"),
            (by_key["learn"], "true or"),
        )
    }
    assert len(columns) == 1, "aligned"
    assert sum("SpaceFilling" in line or "AcquisitionSearch" in line for line in lines) == 1, (
        "a class is named once"
    )


def test_meanings_are_wrapped_for_a_terminal():
    found = nodes(["+experiment=own_table", "trainer=none"])
    for width in (60, 120, 200):
        wrapped = table(found, width)
        words = " ".join(wrapped.split())
        assert "Random seed of everything: the data, the weights," in words
        # Keys, values and types are never cut, whatever they need.
        rows = [line for line in wrapped.splitlines() if line.startswith(" " * 6)]
        assert rows
        assert max(map(len, rows)) <= width


@pytest.mark.slow
def test_what_must_be_given_is_listed_not_refused(capsys, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/my_loan.yaml").write_text(
        "_target_: rehearsal_torch.problems.cases.nonlinear_examples.Loan\nsize:\n"
        "  _target_: rehearsal_torch.problems.world_size.SampleSize\n  # Of the past.\n  rows: ???\n"
        "  contexts: ${dataset.size.rows}\nseed: 0\n"
    )
    typed = ["--config-dir", str(tmp_path), "+experiment=auf", "dataset=my_loan"]
    assert main(typed) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["dataset.size.rows"][1:] == ["???", "whole", "number", "Of", "the", "past."]
    assert lines["dataset.size.contexts"][1:4] == ["???", "=", "${dataset.size.rows}"]
    assert main([*typed, "dataset.size.rows=7"]) == 0
    assert "dataset.size.rows" in (out := capsys.readouterr().out)
    assert "???" not in out
    with pytest.raises(UserError, match=r"dataset\.size\.rows must be given"):
        composed(typed[2:], multirun=False, extra=str(tmp_path))


@pytest.mark.slow
def test_a_table_is_refused_and_a_problem_file_names_its_experiment(tmp_path, monkeypatch, capsys):
    """Both were listed as the path of no data set, and so ignored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").write_text("age,dose,result\n40,1,2\n")
    assert program(["options", "loans.csv"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("loans.csv: neither a problem file nor an experiment says what is asked of it")
    assert "Write a problem file of this table" in told.err
    assert "data=loans.csv, then" in told.err
    (tmp_path / "problem.yaml").write_text("question: trials\nmethod: ucb\n")
    assert program(["options", "problem.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("dataset=trials  ") for line in lines)
    assert any(line.startswith("  dataset.path ") and "problem.yaml" in line for line in lines)


EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
# Keys that neither a comment nor a docstring explains.
UNEXPLAINED: set[str] = set()


def leaves(content, prefix=""):
    """Dotted key and value, without those that say what is built."""
    for name, value in content.items():
        if not str(name).startswith("_"):
            if isinstance(value, dict) and (value or not prefix):
                yield from leaves(value, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", value


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_key_of_every_experiment_is_explained(experiment):
    config, _ = composed([f"+experiment={experiment}"], multirun=False)
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    found = nodes([f"+experiment={experiment}"])
    knobs = {knob.key: knob for node in found for knob in node.knobs}
    assert set(knobs) == {key for key, _ in leaves(OmegaConf.to_container(config, resolve=False))}
    assert [knob.key for knob in knobs.values() if not knob.kind] == []
    assert {key for key, knob in knobs.items() if not knob.meaning} == UNEXPLAINED
    assert {key: knob.value for key, knob in knobs.items()} == dict(
        leaves(OmegaConf.to_container(config, resolve=True))
    )
    assert {node.key for node in found if node.option and not node.meaning} <= {"experiment"}


def test_what_is_inside_of_a_part_is_explained_too():
    found = {
        node.key: node
        for node in nodes(
            ["+experiment=sepsis", "reward=linear", "objective.reward.weights={SOFA: -1, GCS: 0.5}"]
        )
    }
    assert found["surrogate.member.mechanism"].target.endswith("LocationScale")
    assert [(knob.key, knob.value) for knob in found["objective.reward"].knobs] == [
        ("objective.reward.weights.SOFA", -1),
        ("objective.reward.weights.GCS", 0.5),
    ]
    assert all("Variable to weight" in knob.meaning for knob in found["objective.reward"].knobs)


def found(*overrides, **more):
    return {node.key: node for node in nodes(list(overrides), **more)}


def knob(node, key):
    (one,) = [each for each in node.knobs if each.key == key]
    return one


def test_a_reference_has_the_value_that_it_refers_to():
    parts = found("+experiment=cbo", "seed=7")
    seed = knob(parts["dataset"], "dataset.seed")
    assert (seed.value, seed.reference, seed.kind) == (7, "${seed}", "whole number")
    assert shown(seed) == "7 = ${seed}"
    assert knob(parts[""], "seed").reference == ""


@pytest.mark.slow
def test_parts_come_in_the_order_of_the_configuration_and_name_option_and_class():
    parts = found("+experiment=cbo", "decision=ucb")
    assert parts[""].target == ""
    assert (parts["dataset"].option, parts["search"].option) == ("dropwave", "acquisition")
    assert parts["dataset"].target == "rehearsal_torch.problems.trials.benchmark_functions.Dropwave"
    assert parts["dataset"].meaning
    assert not [key for key in parts if key.startswith("hydra")]
    config, _ = composed(["+experiment=cbo", "decision=ucb"], multirun=False)
    order = [str(key) for key in config if str(key) in parts]
    assert [key for key in parts if key in order] == order


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3, "0.3"),
        (True, "true"),
        (None, "null"),
        ("a: b", "'a: b'"),
        ([1, "x"], "[1, x]"),
        ({"a": 1}, "{a: 1}"),
    ],
)
def test_a_value_is_shown_as_it_could_be_typed(value, text):
    assert shown(Knob("key", value, "", "", "")) == text


def test_of_a_sweep_the_first_jobs_are_listed():
    parts = found("+experiment=cbo", "dataset=ackley,dropwave", "seed=3,4", multirun=True)
    assert parts["dataset"].option == "ackley"
    assert knob(parts["dataset"], "dataset.seed").value == 3


def test_a_folder_of_ones_own_explains_itself(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    parts = found("+experiment=toy", extra=str(HERE / "conf"))
    assert (parts["dataset"].option, parts["dataset"].target) == ("toy_ward", "toy_ward.ToyWard")
    assert knob(parts["dataset"], "dataset.pause").kind == "number"
    assert knob(parts["dataset"], "dataset.broken").kind == "true or false"


TEXT = """\
# @package _global_
# What the file is for:
# in two lines.
_target_: lab.Ward  # the class
# How many.
# At least one.
rows: 3
beds: 4 # Not two.
name: "a # b"  # A hash inside quotes is none.
silent: 1

# Far away.

close: 2
# A part.
part:  # Of the ward.
  # Inside.
  depth: [1,
    2]  # Behind a list.
  deeper:
    # Below.
    last: null
"""


def test_a_key_has_the_comment_of_its_line_or_the_lines_above():
    found = comments(TEXT)
    assert found.header == "What the file is for: in two lines."
    assert found.keys == {
        "_target_": "the class",
        "rows": "How many. At least one.",
        "beds": "Not two.",
        "name": "A hash inside quotes is none.",
        "part": "Of the ward.",
        "part.depth": "Behind a list.",
        "part.deeper.last": "Below.",
    }


def test_a_file_of_comments_alone_has_a_header():
    assert comments("# Nothing.\n{}\n") == comments("# Nothing.\n")
    assert comments("").header == ""
