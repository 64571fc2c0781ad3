"""The jobs of a paper: the product of worlds, methods, settings and seeds, stage by stage.

A stage is a table or a figure of the paper. Its blocks list worlds, methods and settings; names under plural
keys (``worlds:``, ``methods:``, ``settings:``) can be replaced when the command is typed, those under
singular keys and ``cross:`` cannot. The name of a group stands for its members. Jobs are ordered by seed
first, so that an interrupted command has similar numbers of seeds everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from rehearsal_torch.files.bounded_yaml import read_yaml, text_of

Study = Mapping[str, Any]
AXES = ("worlds", "methods", "settings")
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """A method in a world with one seed.

    Attributes:
        stage: The stage that planned it.
        world: Name of the world in the rows.
        setting: Setting of world and method, such as ``eta=3``; may be empty.
        method: Name of the method.
        seed: Seed of world and method.
        overrides: Overrides as typed on the command line.
        key: The cells that identify its rows.
    """

    stage: str
    world: str
    setting: str
    method: str
    seed: int
    overrides: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


@cache
def study(name: str) -> Study:
    """The content of a paper's study.yaml."""
    content: Study = read_yaml(FOLDER / name / "study.yaml")
    return content


@cache
def published(name: str) -> Mapping[str, Any]:
    """The numbers printed in a paper, as nested mappings and lists."""
    content: Mapping[str, Any] = read_yaml(FOLDER / name / "published.yaml")
    return content


def published_value(name: str, *path: str) -> Any:
    """A published number, or a group of them; None if the paper does not print it."""
    found: Any = published(name)
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


@cache
def texts(name: str) -> Mapping[str, str]:
    """The paragraphs of a paper's page, section to text; the lines of a paragraph are joined."""
    parts = f"\n{text_of(FOLDER / name / 'text.md')}".split("\n## ")[1:]
    named = (part.partition("\n") for part in parts)
    return {
        section: "\n\n".join(" ".join(text.split()) for text in body.split("\n\n") if text.strip())
        for section, _, body in named
    }


def entry(content: Study, axis: str, name: str) -> dict[str, Any]:
    """A world or a method: its overrides, and further keys if it has any."""
    found = content[axis][name] if axis in content else []
    return {"overrides": found} if isinstance(found, list) else {"overrides": [], **found}


def jobs(content: Study, stage: str, seeds: Sequence[int] = (), **names: Sequence[str]) -> list[Job]:
    """The jobs of a stage, each key once.

    Args:
        content: The study.
        stage: One of its stages.
        seeds: Seeds that replace those of the stage; empty for these.
        names: "worlds", "methods" or "settings" to names that replace those of the stage, likewise.
    """
    found: dict[tuple[str, ...], Job] = {}
    planned = content["stages"][stage]
    for seed in seeds or planned.get("seeds", content.get("seeds", ())):
        for block in planned["jobs"]:
            if seed in block.get("seeds", [seed]):
                for job in _crossed(content, stage, block, names, seed):
                    found.setdefault(job.key, job)
    return list(found.values())


def _names(content: Study, block: Mapping[str, Any], axis: str, typed: Mapping[str, Any]) -> Sequence[str]:
    given = (typed.get(axis) or block[axis]) if axis in block else block.get(axis.removesuffix("s"), [])
    if isinstance(given, str):
        return content.get("groups", {}).get(given, [given])
    return given


def _crossed(
    content: Study, stage: str, block: Mapping[str, Any], typed: Mapping[str, Any], seed: int
) -> Iterator[Job]:
    worlds, methods, settings = (_names(content, block, axis, typed) for axis in AXES)
    for world_name, method_name in product(worlds, methods):
        world, method = entry(content, "worlds", world_name), entry(content, "methods", method_name)
        for setting in (settings if method.get("settings", True) else ()) or ("",):
            for point in product(*(axis.items() for axis in block.get("cross", ()))):
                named = (world.get("setting", ""), setting, *(name for name, _ in point))
                overrides = (
                    *content.get("overrides", ()),
                    *world["overrides"],
                    *method["overrides"],
                    *(content["settings"][setting] if setting else ()),
                    *block.get("overrides", ()),
                    *(text for _, texts_ in point for text in texts_),
                    f"seed={seed}",
                )
                cells = {
                    "stage": stage,
                    "world": world.get("dataset", world_name),
                    "setting": " ".join(text for text in named if text),
                    "method": method_name,
                }
                key = tuple(str({**cells, "seed": seed}[name]) for name in content["key"])
                yield Job(**cells, seed=seed, overrides=overrides, key=key)
