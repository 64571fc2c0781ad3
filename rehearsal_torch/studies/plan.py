"""What a stage of a study runs: a job for each world, method, setting and seed.

Jobs go seed by seed, so that a study that ends early has as many seeds everywhere. A job is what
``scripts/decide.py`` does with its overrides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rehearsal_torch.studies.study import Block, Study


@dataclass(frozen=True)
class Job:
    """A method in a world with one seed: what is done once and recorded.

    Attributes:
        stage: The stage that planned it.
        world: The world's name in the study's rows.
        setting: What else distinguishes the job, such as ``eta=3``; empty for nothing.
        method: The method's name in the study.
        seed: Of world and method.
        overrides: What makes it so, as one would type it.
        key: The texts that it is known by in the study's record.
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
    """A stage's jobs, each key once.

    Args:
        study: The study.
        stage: One of its stages.
        worlds: Worlds that replace those of the stage, in the study's order; None for the stage's own.
        methods: Methods, likewise.
        settings: Settings, likewise.
        seeds: Seeds, likewise, in the order given.
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
    for axis, chosen in given.items():
        if chosen is not None and axis in block.replaceable:
            names[axis] = tuple(chosen)
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
