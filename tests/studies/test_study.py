"""What a study is, where its file leaves something out."""

from pathlib import Path

from rehearsal_torch.studies.study import KEY, KINDS, STUDIES, Block, Study
from rehearsal_torch.studies.study_files import study


def test_what_is_left_out_is_nothing():
    one = Study("one", "One", "A study.", "ours", Path("out"), "job", "a.b=1")
    assert one.key == KEY
    assert not one.stages
    assert not Block(("w",), ("m",)).replaceable


def test_options_of_the_studies_have_a_kind_and_a_default_of_it():
    for name in STUDIES:
        for key, option in study(name).options.items():
            assert option.key == key
            assert option.kind in KINDS
            if option.kind == "whole":
                assert option.default is None or type(option.default) is int
