"""Methods by name: the files of ``conf/decision``, and the kind of problem that each of them solves.

The kind is the one that the class of the method's surrogate declares (`Surrogate.kind`).
"""

from functools import cache
from typing import Any

from rehearsal_torch.cli.errors import did_you_mean
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.data.question import Kind
from rehearsal_torch.files.dotted import found_at
from rehearsal_torch.files.plain import read_yaml

# What the methods of each kind decide for, and the default method, which is listed first.
_FOR: dict[Kind, str] = {
    "rehearse": "cases of a table (rt.rehearse)",
    "optimise": "trials (rt.CausalOptimiser)",
    "look_back": "episodes (rt.look_back)",
}
_FIRST: dict[Kind, str] = {"rehearse": "cme_stack", "optimise": "excbo", "look_back": "branch_and_bound"}


class RequestError(ValueError):
    """A request that cannot be fulfilled; the message says what to change."""


def methods_for(job: Kind) -> list[str]:
    """The methods of a kind, the default first, the others in alphabetical order."""
    names = [name for name in _all() if job_of(name) == job]
    return sorted(names, key=lambda name: (name != _FIRST[job], name))


@cache
def job_of(method: str) -> Kind:
    """The kind of problem that a method solves.

    Args:
        method: The name of a file in ``conf/decision``.
    """
    entries = read_yaml(CONF / "decision" / f"{method}.yaml")["defaults"]
    (surrogate,) = (entry["override /surrogate"] for entry in entries if "override /surrogate" in entry)
    kind: Kind = found_at(_node(surrogate)["_target_"]).kind
    return kind


def check_method(method: str, job: Kind) -> None:
    """Refuses a method that does not exist, or is of another kind.

    Args:
        method: The name of a file in ``conf/decision``.
        job: The required kind.

    Raises:
        RequestError: with the list of suitable methods.
    """
    if method in _all() and job_of(method) == job:
        return
    suited = methods_for(job)
    if method in _all():
        raise RequestError(
            f"method={method!r} decides for {_FOR[job_of(method)]}; here it is for {_FOR[job]}: choose one "
            f"of {', '.join(suited)}"
        )
    near = did_you_mean(str(method), suited)
    hint = f" {near}" if near.startswith("Did") else ""
    raise RequestError(f"there is no method {method!r}: choose one of {', '.join(suited)}.{hint}")


@cache
def _all() -> tuple[str, ...]:
    """Every method, in alphabetical order."""
    return tuple(sorted(path.stem for path in (CONF / "decision").glob("*.yaml")))


def _node(surrogate: str) -> dict[str, Any]:
    """The keys of a surrogate's configuration, including those of its defaults."""
    content = read_yaml(CONF / "surrogate" / f"{surrogate}.yaml")
    merged: dict[str, Any] = {}
    for base in content.get("defaults", []):
        # A base with a package, such as transition@member, is a part.
        if base != "_self_" and "@" not in base:
            merged |= _node(base)
    return merged | content
