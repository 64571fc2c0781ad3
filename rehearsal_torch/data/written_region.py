"""The desired region of a rehearsal task as written: inequalities, bounds, or faces.

    sales - 2*cost >= 10 and cost <= 4              text, or a list of texts that must all hold
    {repaid: [0.6, null]}                           bounds; null leaves a side open
    {names: [...], normals: [[...]], offsets: [...]}    faces, M y <= d

Source: Du et al. (2026), Sec. 2.1, for the region M y <= d.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

from rehearsal_torch.files.schema import Name, Names, Number, Schema, Sides, fault, form, mapping
from rehearsal_torch.spaces.inequalities import FACES, InequalityError, inequalities
from rehearsal_torch.spaces.polytope import Polytope

SETS = 20_000
OPEN, FLAT = form("<outcome>"), form("names", "normals", "offsets")
REGION = (
    "inequalities such as 0.6 <= repaid, {outcome: [lower, upper]}, null for an open side, or {names: [...], "
    "normals: [[...]], offsets: [...]}"
)


def _rectangle(rows: Any) -> Any:
    if (
        not isinstance(rows, list)
        or not rows
        or not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
    ):
        raise fault("rows of equal length, [[...], ...]", rows)
    if len(rows) * len(rows[0]) > SETS or len(rows) > FACES:
        raise fault(f"at most {FACES} faces with {SETS} numbers", rows)
    return rows


def _column(numbers: Any) -> Any:
    if not isinstance(numbers, list):
        raise fault("a list of numbers", numbers)
    return numbers


Normals = Annotated[list[list[Number]], BeforeValidator(_rectangle)]
Offsets = Annotated[list[Number], BeforeValidator(_column)]


class Faces(Schema):
    """Faces M a <= d: normals M and offsets d."""

    normals: Normals
    offsets: Offsets

    def polytope(self, names: Sequence[str]) -> Polytope:
        """The polytope in these variables.

        Raises:
            ValueError: if the shapes disagree, or no point satisfies all faces.
        """
        return Polytope(
            tuple(names),
            torch.tensor(self.normals, dtype=torch.float64),
            torch.tensor(self.offsets, dtype=torch.float64),
        )


class NamedFaces(Faces):
    """Faces, with the names of the outcomes."""

    names: Names


def _region(plain: Any) -> str:
    return FLAT if isinstance(plain, NamedFaces) or (isinstance(plain, dict) and "normals" in plain) else OPEN


def _faces_of_text(plain: Any) -> Any:
    """Text, or a list of texts, as faces."""
    if not isinstance(plain, str | list) or not plain:
        return plain
    lines = [plain] if isinstance(plain, str) else plain
    for place, line in enumerate(lines):
        where = f"inequality {place + 1}, " if isinstance(plain, list) else ""
        if not isinstance(line, str):
            raise fault(f"{where}a text such as 0.6 <= repaid", line)
        try:
            inequalities(line)
        except InequalityError as error:
            raise PydanticCustomError("fault", "{words}", {"words": f"{where}{error}"}) from error
    found = inequalities(lines)
    return {
        "names": list(found.names),
        "normals": [list(normal) for normal in found.normals],
        "offsets": list(found.offsets),
    }


WrittenRegion = Annotated[
    Annotated[dict[Name, Sides], Tag(OPEN)] | Annotated[NamedFaces, Tag(FLAT)],
    Discriminator(_region),
    mapping(REGION),
    BeforeValidator(_faces_of_text),
]


def region_of(region: dict[str, list[float | None]] | NamedFaces) -> Polytope:
    """The polytope of a validated region.

    Raises:
        ValueError: if the shapes disagree, or no point lies in it.
    """
    return region.polytope(region.names) if isinstance(region, NamedFaces) else Polytope.of(region)


def outcomes_of(region: dict[str, list[float | None]] | NamedFaces) -> list[str]:
    """The outcomes of a validated region."""
    return region.names if isinstance(region, NamedFaces) else list(region)
