"""The page of the results: what was repeated how often, what was found, and what counts as a fault."""

from collections.abc import Mapping
from typing import Any

OBSTACLES = ("file limit", "full disk", "read-only", "at once")


def faults(found: Mapping[str, Any]) -> list[str]:
    """Every fault of all parts, as sentences; empty if there is none."""
    sentences = list[str]()
    for name in ("decisions", "sessions", "rounds"):
        memory = found[name]["memory"]
        if memory["flat"] is False:
            sentences.append(f"{name}: memory grew from {memory['first']} to {memory['last']} MiB")
    if different := found["decisions"]["different"]:
        sentences.append(
            f"decisions: {len(different)} differ from the first for their case, the first at {different[0]}"
        )
    rounds = found["rounds"]
    if not rounds["read_again"]:
        sentences.append("rounds: the file gives other trials than the process that wrote it")
    sentences += [f"rounds: {name} was left behind" for name in rounds["left_over"]]
    sentences += [f"campaign: {fault}" for fault in found["campaign"]["faults"]]
    for part in (*_parts(found, "kills"), *_parts(found, "obstacles")):
        sentences += [f"{part['command']}: {fault}" for fault in part["faults"]]
    return sentences


def page(whole: Mapping[str, Any]) -> str:
    """README.md, from the content of endurance.json."""
    found, run = whole["parts"], whole["run"]
    decisions, rounds, sessions = (found[name] for name in ("decisions", "rounds", "sessions"))
    campaign = found["campaign"]
    others = [name for name, part in found.items() if part["commit"] != run["commit"]]
    changed, same = len(decisions["different"]), "the same" if rounds["read_again"] else "other"
    lines = [
        "# Endurance",
        "",
        "Whether memory, files and results hold when something is repeated for long, and when commands are "
        "killed. All numbers and every fault are in `endurance.json`.",
        "",
        f"Faults found: {len(whole['faults']) or 'none'}.",
        *(f"- {fault}" for fault in whole["faults"]),
        "",
        "## Repetition in one process",
        "",
        "`first` and `last` are medians of the resident memory over the first tenth after a warm-up of a "
        "tenth, and over the last tenth, without what was freed and what MKL and oneDNN keep for each size "
        "of matrix: some 9 MiB more in 300 rounds, of which each has a new one. Memory counts as flat if "
        "they differ by at most 8 MiB: a model of 300 trials has 3 MiB.",
        "",
        "| what | times | first, MiB | last, MiB | most, MiB | flat | time of each |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| decisions of two fitted models by turns ({', '.join(decisions['models'])}), {decisions['cases']} "
        f"cases in turn | {decisions['decisions']:,} | "
        f"{_memory(decisions)} | {decisions['milliseconds']:g} ms |",
        f"| ask and tell, a new optimiser after {sessions['trials']} trials | {sessions['rounds']:,} | "
        f"{_memory(sessions)} | {sessions['seconds']:g} s |",
        f"| ask and tell of one optimiser, with a file | {rounds['rounds']:,} | {_memory(rounds)} | "
        f"{rounds['seconds_first']:g} s at first, {rounds['seconds_last']:g} s at last |",
        "",
        f"Of {decisions['compared']:,} decisions that repeat a case, {changed} differ from the first one of "
        "their model for that case in any bit. The file of trials grew by "
        f"{rounds['bytes_per_round']:g} bytes a round to {rounds['bytes']:,} bytes; another optimiser reads "
        f"{same} trials from it. The true reward of the recommended action is {rounds['true_reward']:g} "
        "(best possible: 1).",
        "",
        "## A campaign that is killed",
        "",
        f"A campaign of {campaign['rounds']} trials, of which {campaign.get('failed', 0)} fail and "
        f"{campaign.get('abandoned', 0)} are abandoned, and whose bounds are widened after half of them, is "
        f"killed {campaign['kills']} times at random, {campaign['with_a_pending_trial']} times while a trial "
        "waited for its report, and goes on from its file. At every kill its trials must be the first ones "
        "of the same campaign without kills, no setting may be asked for more often, and the files of both "
        "must be equal to the last byte at the end, recommendations too: "
        f"{len(campaign['faults']) or 'no'} faults. "
        f"The true reward of the last recommendation is {campaign['true_reward']:g} (best possible: 1). "
        "[Its log](campaign.log) shows every trial and every kill.",
        "",
        "## Kills",
        "",
        "Each command is killed (SIGKILL) at times drawn evenly from the length of an undisturbed one, typed "
        "again with `resume=` (the report: the same command), killed again up to three "
        "times in a round, and then ends undisturbed. After every kill, whole lines of `decisions.jsonl` "
        "must be those of the undisturbed command and none may be lost, and files that are replaced must be "
        "the old or the new ones. At the end, the folder must hold the same files with the same bytes, and "
        "nothing else. Files that differ between two undisturbed commands hold times of the clock: of those "
        "that do so in numbers of seconds alone (`run.json`, `status.json`, `metrics.csv`) the rest is "
        "compared; of the others (the table of times, a picture of them, the page that shows both), and of "
        "`training/`, where the trainer counts its starts, only that they are there. Kills begin after the "
        "packages have been imported. Workers of a killed command end by themselves within a second, while "
        "it is typed again.",
        "",
        "| command | kills | rounds | seconds undisturbed | files | equal bytes asked of | faults |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {part['command']} | {part['kills']} | {part['rounds']} | {part['undisturbed_seconds']:g} | "
            f"{part['files']} | {part['equal']} | {len(part['faults'])} |"
            for part in _parts(found, "kills")
        ),
        "",
        "## Full disks, read-only folders, two processes",
        "",
        "Each command meets each obstacle: no file can grow beyond a random size, a disk in memory has less "
        "room than its files take, nobody may write into the folder, or the same command is typed a second "
        "time while the first runs. It must end as ever or be refused with a sentence that says why; nothing "
        "that was there may be lost or half-written; and, typed again without the obstacle, it must give the "
        "files of an undisturbed command. Two optimisers share one file of trials by turns, and neither is "
        "refused for it. Where the system lets nobody mount a disk, none is met.",
        "",
        f"| command | each met | refused, {' | refused, '.join(OBSTACLES)} | faults |",
        f"| --- | {'---: | ' * (len(OBSTACLES) + 1)}---: |",
        *(
            f"| {part['command']} | {part['met']} | "
            f"{' | '.join(_times(part['refused'][name]) for name in OBSTACLES)} | {len(part['faults'])} |"
            for part in _parts(found, "obstacles")
        ),
        "",
        f"Made by `{run['command']}`; commit {str(run['commit'])[:12]}"
        f"{', of an earlier one: ' if others else ''}{', '.join(others)}; "
        + ", ".join(f"{name} {version}" for name, version in run["versions"].items() if version)
        + f"; {run['machine']['cores']} cores, shared with other work.",
    ]
    return "\n".join(lines) + "\n"


def _parts(found: Mapping[str, Any], what: str) -> list[Mapping[str, Any]]:
    return [found[name] for name in found if name.startswith(f"{what} ")]


def _times(count: int | None) -> str:
    return "not met" if count is None else str(count)


def _memory(part: Mapping[str, Any]) -> str:
    memory = part["memory"]
    flat = {True: "yes", False: "no", None: "too few"}[memory["flat"]]
    return f"{memory['first']:g} | {memory['last']:g} | {memory['most']:g} | {flat}"
