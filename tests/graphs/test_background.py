"""Background knowledge: what it permits, and what contradicts itself."""

import pytest

from rehearsal_torch.graphs.bidirection import Background


def test_roles_are_tiers():
    known = Background.roles("xabzy", "x", "y")
    assert known.tiers == (("x",), ("a", "b", "z"), ("y",))
    assert known.permits("x", "a")
    assert known.permits("x", "y")
    assert not known.permits("a", "x")
    assert not known.permits("y", "a")
    assert known.permits_both("a", "b")
    assert not known.permits_both("x", "a")
    assert known.later("y", ("x", "a"))
    assert not known.later("a", ("x", "b"))
    assert Background.roles("ab").tiers == (("a", "b"),)


def test_single_edges_are_forbidden_and_required():
    known = Background(forbidden=(("a", "b"),), required=(("c", "a"),))
    assert not known.permits("a", "b")
    assert known.permits("b", "a")
    assert known.permits("c", "a")
    assert not known.permits("a", "c"), "the other direction of what is required"
    assert not known.permits_both("a", "c")
    assert known.adjacent("a", "c")
    assert not known.adjacent("a", "b")
    assert not known.later("a", ("b",)), "what stands in no tier is not later"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Background((("a",), 3)), "tiers: expected lists of variables; got 3"),
        (lambda: Background(required=(3,)), "required: expected pairs"),
        (lambda: Background((("a", "b"), ("b",))), r"\['b'\] stand in two tiers"),
        (lambda: Background((("a",), ("b",)), required=(("b", "a"),)), "b -> a is against the tiers"),
        (lambda: Background(forbidden=(("a", "b"),), required=(("a", "b"),)), "a -> b is forbidden as well"),
        (lambda: Background(required=(("a", "b"), ("b", "a"))), "join the same two variables"),
        (lambda: Background(required=(("a", "b"), ("b", "c"), ("c", "a"))), "run in a circle"),
        (lambda: Background(forbidden=("ab",)), r"forbidden: expected pairs \[from, to\]"),
        (lambda: Background.roles("ab", "q"), r"names \['q'\]: the variables are \['a', 'b'\]"),
        (lambda: Background(forbidden=(("a", "z"),)).check("ab"), r"names \['z'\]"),
    ],
)
def test_what_contradicts_itself_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_text_is_a_tier_of_one_and_never_letters():
    assert Background(("season", ["price", "rival"])).tiers == (("season",), ("price", "rival"))
