"""The desired region as the end of a sentence: the chance that *progression is at most 140*.

    progression <= 140          progression is at most 140
    100 <= progression <= 140   progression is between 100 and 140
    repaid = yes                repaid is yes
    severity <= medium          severity is at most medium

A region of several variables, or with long names, is not said: then sentences speak of a desired outcome, and
the question of the report states the region.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.recorded import bound_in_words
from rehearsal_torch.data.codings.texts import recorded_codings
from rehearsal_torch.spaces.box import setting_text

if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask

MOST = 60


def wanted(
    names: Sequence[str],
    normals: Sequence[Sequence[float]],
    offsets: Sequence[float],
    codings: Mapping[str, Coding],
) -> str:
    """The region M y <= d in words; empty unless it bounds one variable, and is short.

    Args:
        names: The |Y| outcomes.
        normals: M, a row per face.
        offsets: d.
    """
    bounds = [
        [(name, weight, offset) for name, weight in zip(names, normal, strict=True) if weight]
        for normal, offset in zip(normals, offsets, strict=True)
    ]
    if any(len(face) != 1 for face in bounds):
        return ""
    faces = [face[0] for face in bounds]
    said = ""
    if len(faces) == 1:
        said = _one(*faces[0], codings)
    elif len(faces) == 2 and faces[0][0] == faces[1][0] and faces[0][1] * faces[1][1] < 0:
        name = faces[0][0]
        low, high = sorted(offset / weight for _, weight, offset in faces)
        if name not in codings and low < high:
            said = f"{name} is between {setting_text(low)} and {setting_text(high)}"
    return said if len(said) <= MOST else ""


def wanted_in(task: "RehearsalTask") -> str:
    """The desired region of a task in words; see `wanted`."""
    region = task.region
    return wanted(region.names, region.normals.tolist(), region.offsets.tolist(), task.coded)


def wanted_of(card: Mapping[str, Any]) -> str:
    """The desired region of a recorded data card in words; empty where it is not recorded as it should be."""
    stated = card.get("region")
    if not isinstance(stated, Mapping):
        return ""
    try:
        return wanted(
            [str(name) for name in stated["names"]],
            [[float(weight) for weight in normal] for normal in stated["normals"]],
            [float(offset) for offset in stated["offsets"]],
            recorded_codings(card.get("codings")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""


def _one(name: str, weight: float, offset: float, codings: Mapping[str, Coding]) -> str:
    """One face of one variable."""
    coding = codings.get(name)
    if coding is not None:
        said = bound_in_words(coding, offset / weight, weight > 0)
        return f"{coding.name} is {said.removeprefix(f'{coding.name} ')}"
    return f"{name} is {'at most' if weight > 0 else 'at least'} {setting_text(offset / weight)}"
