"""Kept draws: the same object until its source changes, and no more than fit."""

from copy import deepcopy

import torch

from rehearsal_torch.surrogates.outcome.kept_draws import KeptDraws


def counting(kept):
    made = []

    def ask(key, source, cells=1):
        def make():
            made.append(key)
            return [key]

        return kept.get(key, source, cells, make)

    return ask, made


def test_draws_are_made_once_until_their_source_changes():
    ask, made = counting(KeptDraws(10))
    source = [torch.zeros(2), torch.zeros(3)]
    first = ask("a", source)
    assert ask("a", source) is first
    source[1] += 1
    assert ask("a", source) is not first
    source[0] = source[0].clone()
    ask("a", source)
    ask("a", source[:1])
    assert made == ["a"] * 4


def test_the_least_used_make_room_and_what_does_not_fit_is_not_kept():
    kept = KeptDraws(10)
    ask, made = counting(kept)
    for key in ("a", "b", "a", "c"):
        ask(key, [], 4)
    ask("a", [], 4)
    assert made == ["a", "b", "c"]
    ask("b", [], 4)
    assert made == ["a", "b", "c", "b"]
    ask("large", [], 11)
    ask("large", [], 11)
    assert made[4:] == ["large", "large"]
    assert len(kept) == 2
    assert ask("b", [], 4) == ["b"]
    assert len(made) == 6


def test_copies_start_without_any():
    kept = KeptDraws(10)
    ask, _ = counting(kept)
    ask("a", [])
    copied = deepcopy(kept)
    assert (len(kept), len(copied), copied.most) == (1, 0, 10)


def test_tensors_of_inference_mode_keep_nothing():
    ask, made = counting(KeptDraws(10))
    with torch.inference_mode():
        source = [torch.zeros(2)]
    assert ask("a", source) is not ask("a", source)
    assert made == ["a", "a"]


def test_what_is_made_in_inference_mode_is_not_kept():
    ask, made = counting(KeptDraws(10))
    with torch.inference_mode():
        ask("a", [])
    kept = ask("a", [])
    with torch.inference_mode():
        assert ask("a", []) is not kept
    assert ask("a", []) is kept
    assert made == ["a"] * 3
