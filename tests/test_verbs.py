"""Verbs and what is typed behind them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.console_command import Option, Verb

TOYS = Verb(
    "prepare toys",
    "Makes toys.",
    options=(
        Option("shape", "what they look like", "cube", ("cube", "ball")),
        Option("out", "the folder to write to", required=True),
        Option("count", "how many"),
        Option("seed", "where everything random starts", "0"),
    ),
    work="toys.toys",
)
TEXTS = st.text("ab=. /", min_size=1)


def test_defaults_stand_in_and_options_without_one_are_left_out():
    assert TOYS.read(["out=a=b"]) == {"shape": "cube", "seed": "0", "out": "a=b"}


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    values=st.fixed_dictionaries(
        {"out": TEXTS}, optional={"shape": st.sampled_from(["cube", "ball"]), "count": TEXTS, "seed": TEXTS}
    ),
    order=st.randoms(use_true_random=False),
)
def test_what_was_typed_is_read_back_in_any_order(values, order):
    typed = [f"{key}={value}" for key, value in values.items()]
    order.shuffle(typed)
    assert TOYS.read(typed) == {"shape": "cube", "seed": "0"} | values


def test_the_verb_of_a_script_that_does_one_thing_is_not_typed():
    alone = Verb("learn_graph", "Learns.", options=TOYS.options, work=TOYS.work)
    assert alone.usage() == "python scripts/learn_graph.py out=OUT"
    assert TOYS.usage() == "python scripts/prepare.py toys out=OUT"


def test_paths_stand_without_a_key_or_under_theirs_and_may_hold_an_equals_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed=1,shape=ball").mkdir()
    (tmp_path / "method=care").mkdir()
    typed = ["a/run", "run=b/run", "method=care", "out=there", "run=method=care"]
    paths, options = replace(TOYS, paths="RUN [RUN ...]").read_with_paths(typed)
    assert [str(each) for each in paths] == ["a/run", "b/run", "method=care", "method=care"]
    assert options == {"shape": "cube", "seed": "0", "out": "there"}
