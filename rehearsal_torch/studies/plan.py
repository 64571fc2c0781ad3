"""The jobs of a stage: one for each world, method, setting and seed.

Jobs are ordered by seed first, so that an interrupted study has similar numbers of seeds everywhere. A job
does what ``scripts/decide.py`` does with its overrides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rehearsal_torch.studies.study import Block, Study


@dataclass(frozen=True)
class Job:
    """A method in a world with one seed.

    Attributes:
        stage: The stage that planned it.
        world: Name of the world in the study's rows.
        setting: Setting of world and method, such as ``eta=3``; may be empty.
        method: Name of the method.
        seed: Seed of world and method.
        overrides: Overrides as typed on the command line.
        key: The identifying cells of its rows in the study's record.
    """

    stage: str
    world: str
    setting: str
    method: str
    seed: int
    overrides: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


def jobs(
    study: Study,
    stage: str,
    worlds: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Job]:
    """The jobs of a stage, each key once.

    Args:
        study: The study.
        stage: One of its stages.
        worlds: Names that replace the worlds of the stage; None for those of the stage.
        methods: Names that replace its methods, likewise.
        settings: Names that replace its settings, likewise.
        seeds: Seeds that replace those of the stage, likewise.
    """
    found: dict[tuple[str, ...], Job] = {}
    given = {"worlds": worlds, "methods": methods, "settings": settings}
    planned = study.stages[stage]
    for seed in planned.seeds if seeds is None else seeds:
        for block in planned.blocks:
            if block.seeds is None or seed in block.seeds:
                for job in _crossed(study, stage, _replaced(block, given), seed):
                    found.setdefault(job.key, job)
    return list(found.values())


def _replaced(block: Block, given: Mapping[str, Sequence[str] | None]) -> Block:
    names = {"worlds": block.worlds, "methods": block.methods, "settings": block.settings}
    for axis, replacement in given.items():
        if replacement is not None and axis in block.replaceable:
            names[axis] = tuple(replacement)
    return replace(block, worlds=names["worlds"], methods=names["methods"], settings=names["settings"])


def _crossed(study: Study, stage: str, block: Block, seed: int) -> Iterator[Job]:
    for world_name, method_name in product(block.worlds, block.methods):
        world, method = study.worlds[world_name], study.methods[method_name]
        for setting in (block.settings if method.settings else ()) or ("",):
            for point in product(*(axis.items() for axis in block.cross)):
                named = (world.setting, setting, *(name for name, _ in point))
                overrides = (
                    *study.overrides,
                    *world.overrides,
                    *method.overrides,
                    *(study.settings[setting] if setting else ()),
                    *block.overrides,
                    *(text for _, texts in point for text in texts),
                    f"seed={seed}",
                )
                texts = {
                    "stage": stage,
                    "world": world.dataset,
                    "setting": " ".join(text for text in named if text),
                    "method": method.name,
                }
                key = tuple(str({**texts, "seed": seed}[name]) for name in study.key)
                yield Job(**texts, seed=seed, overrides=overrides, key=key)
