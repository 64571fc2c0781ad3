"""What the study of structural rehearsal models runs: methods, in worlds, for some tau, repeat by repeat.

    qwz23              the most informative of what reaches tau; the most probable where nothing does, and
                       once there is next to nothing to learn
    qwz23_exact        the same with indifference 0: as informative as tau allows, to the last round
    qwz23_published
    the paper's settings: Bayesian ridge, UCB, the constraint dropped where nothing reaches tau
    qwz23_refusing     nothing is altered where nothing reaches tau
    qwz23_success      the most probable alteration, nothing for the sake of learning
    causal             qwz23 without bi-directional edges
    associative        qwz23 on a regression of the outcome, without any graph
    forgetting         qwz23_success under a posterior that forgets, for a world that changes
    none               nothing is altered

A repeat is what ``scripts/decide.py +experiment=... seed=...`` does, with the overrides it lists; its seed is
the repeat's number.

Source: Qin et al. (2023), Sec. 6 and Fig. 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.studies.rounds_record import Repeat

WORLDS = {
    "ride_hailing": ("+experiment=ride_hailing",),
    "bermuda": ("+experiment=bermuda_online",),
    "ride_hailing_released": ("+experiment=ride_hailing", "dataset.released=true"),
    "two_stores": ("+experiment=two_stores",),
}
TAUS = ("0.7", "0.3", "0.5", "0.9")


@dataclass(frozen=True)
class Method:
    """A method of the study.

    Attributes:
        overrides: What makes it so.
        constrained: Whether it asks for a tau.
        counterpart: Which other beliefs it has: `causal`, `associative`, or its own.
    """

    overrides: tuple[str, ...]
    constrained: bool = True
    counterpart: str = ""


METHODS = {
    "qwz23": Method(("decision=qwz23_online",)),
    "qwz23_success": Method(("decision=qwz23_success",), constrained=False),
    "qwz23_exact": Method(("decision=qwz23_online", "search.indifference=0")),
    "qwz23_published": Method(("decision=qwz23_published",)),
    "qwz23_refusing": Method(("decision=qwz23",)),
    "causal": Method(("decision=qwz23_online",), counterpart="causal"),
    "associative": Method(("decision=qwz23_online",), counterpart="associative"),
    "forgetting": Method(("decision=qwz23_success", "surrogate.forgetting=0.9"), constrained=False),
    "none": Method(("decision=none",), constrained=False),
}


def repeats(
    worlds: Sequence[str], methods: Sequence[str], taus: Sequence[str], numbers: Sequence[int]
) -> list[Repeat]:
    """The study's repeats, repeat by repeat, so that one that ends early has as many of them everywhere.

    Args:
        worlds: Names of `WORLDS`.
        methods: Names of `METHODS`.
        taus: For the methods that ask for one.
        numbers: Which repeats.
    """
    found = []
    for number in numbers:
        for world in worlds:
            for method in methods:
                known = METHODS[method]
                for tau in taus if known.constrained else ("",):
                    asked = (f"search.tau={tau}",) if tau else ()
                    found.append(
                        Repeat(
                            world,
                            method,
                            tau,
                            number,
                            (*WORLDS[world], *known.overrides, *asked, f"seed={number}"),
                        )
                    )
    return found
