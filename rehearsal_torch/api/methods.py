"""Methods by name: the files of ``conf/decision``, and the kind of problem that each of them solves.

The kind is the one that the class of the method's surrogate declares (`Surrogate.kind`).
"""

from rehearsal_torch.cli.methods import all_methods, surrogate_class
from rehearsal_torch.data.question import Kind
from rehearsal_torch.files.addresses import InputError
from rehearsal_torch.user_error import did_you_mean

# What the methods of each kind decide for, and the default method, which is listed first.
_FOR: dict[Kind, str] = {
    "rehearse": "cases of a table (rt.rehearse)",
    "optimise": "trials (rt.CausalOptimiser)",
    "look_back": "episodes (rt.look_back)",
}
_FIRST: dict[Kind, str] = {"rehearse": "cme_stack", "optimise": "excbo", "look_back": "branch_and_bound"}


class RequestError(InputError):
    """A request that cannot be fulfilled; the message says what to change."""


class RequestWarning(UserWarning):
    """A request that is fulfilled, but may not mean what was intended; the message says why."""


def methods_for(job: Kind) -> list[str]:
    """The methods of a kind, the default first, the others in alphabetical order."""
    names = [name for name in all_methods() if job_of(name) == job]
    return sorted(names, key=lambda name: (name != _FIRST[job], name))


def job_of(method: str) -> Kind:
    """The kind of problem that a method solves.

    Args:
        method: The name of a file in ``conf/decision``.
    """
    kind: Kind = surrogate_class(method).kind
    return kind


def check_method(method: str, job: Kind) -> None:
    """Refuses a method that does not exist, or is of another kind.

    Args:
        method: The name of a file in ``conf/decision``.

    Raises:
        RequestError: with the list of suitable methods.
    """
    if method in all_methods() and job_of(method) == job:
        return
    suited = methods_for(job)
    if method in all_methods():
        raise RequestError(
            f"method={method!r} decides for {_FOR[job_of(method)]}; here it is for {_FOR[job]}: choose one "
            f"of {', '.join(suited)}"
        )
    near = did_you_mean(str(method), suited)
    hint = f" {near}" if near.startswith("Did") else ""
    raise RequestError(f"there is no method {method!r}: choose one of {', '.join(suited)}.{hint}")
