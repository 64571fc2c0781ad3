"""Endurance: what is measured again and again, until it would show.

    decisions   one process decides by two methods for a few cases in turn, thousands of times: memory, equal
                decisions
    sessions    optimisers of a few trials each, one after the other in one process: memory
    rounds      one optimiser asks and is told, hundreds of times, with a file: memory, file, seconds
    campaign    one optimiser with a file is killed at random and goes on, through failed and abandoned trials
                and a change of bounds: the same decisions as without a kill
    kills       train, decide, trials and report are killed at random times and resumed: the same files as
                without a kill, nothing lost, nothing left behind; half of the kills of decide are those of
                one with two workers
    obstacles   the same commands meet a limit of files, a full disk, a read-only folder, and another process
                on the folder

Each part runs in a process of its own, and so does each command. A part that was finished with the same
numbers at the same commit is not run again, so that the command goes on where it was interrupted; one that is
asked for 0 times stays in the results as it was. It ends with exit code 1 if a fault was found.

Run: python -m benchmarks.endurance [--decisions 2000] [--rounds 300] [--campaign 200] [--kills 50] [--met 4]
Writes endurance.json, campaign.log and README.md (--out DIR), and keeps its work (--work DIR); results in
docs/results come from a clean commit.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.endurance.page import faults, page
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.user_error import UserError
from reproduction.commits import check_clean

# MKL and oneDNN keep memory for every new size of matrix: 9 of the 11 MiB by which 300 rounds grew.
KEEP_NOTHING = {"MKL_DISABLE_FAST_MM": "1", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}
COMMANDS = ("train", "decide", "trials", "report", "optimiser")
SHARED = "decide, 2 workers"


def parts(decisions: int, rounds: int, campaign: int, kills: int, met: int) -> dict[str, int]:
    """The parts, and the number of repetitions of each."""
    killed = {f"kills {name}": kills for name in COMMANDS if name != "optimiser"}
    killed |= {"kills decide": kills - kills // 2, f"kills {SHARED}": kills // 2}
    met_by = {f"obstacles {name}": met for name in COMMANDS}
    repeated = {"decisions": decisions, "sessions": rounds, "rounds": rounds, "campaign": campaign}
    return repeated | killed | met_by


def measured(part: str, count: int, work: Path) -> dict[str, Any]:
    """Runs one part in this process."""
    if part == "decisions":
        from benchmarks.endurance.decisions import repeated

        return repeated(count)
    if part == "rounds":
        from benchmarks.endurance.rounds import rounds

        return rounds(count, work / "rounds/trials.json")
    if part == "sessions":
        from benchmarks.endurance.rounds import sessions

        return sessions(count, work / "sessions/trials.json")
    from benchmarks.endurance.commands import commands, finished, in_child, preload
    from benchmarks.endurance.kills import killed

    preload()
    if part == "campaign":
        from benchmarks.endurance.campaign import campaign

        return campaign(count, work / "campaign")
    what, _, name = part.partition(" ")
    shared = work / "shared"
    if not (shared / "ended").is_file():
        shared.mkdir(parents=True, exist_ok=True)
        number = in_child(partial(finished, shared), shared)
        if os.waitpid(number, 0)[1] != 0:
            raise RuntimeError(f"the commands to start from failed: see {shared / 'said.log'}")
        (shared / "ended").touch()
    if what == "obstacles":
        from benchmarks.endurance.obstacles import met

        return met(name, commands(shared)[name], work / "obstacles" / name, count)
    return killed(name, commands(shared)[name], work / name, count)


def run(chosen: argparse.Namespace) -> int:
    """Runs the parts that are missing, and writes the results."""
    check_clean(chosen.out)
    record = provenance("endurance", [], 0)
    counts = {name: getattr(chosen, name) for name in ("decisions", "rounds", "campaign", "kills", "met")}
    options = " ".join(f"--{name} {count}" for name, count in counts.items())
    record |= {"command": f"python -m benchmarks.endurance {options}"}
    found, file = dict[str, Any](), chosen.out / "endurance.json"
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"parts": {}}
    work = chosen.work.resolve() / str(record["commit"] or "none")[:12]
    for part, count in parts(**counts).items():
        if not count:
            if part in earlier["parts"]:
                found[part] = {"commit": earlier["run"]["commit"], **earlier["parts"][part]}
            continue
        kept = work / f"{part.replace(' ', '_')}_{count}.json"
        if not kept.is_file():
            print(f"{part}: {count} ...", flush=True)
            one = [sys.executable, "-m", "benchmarks.endurance", "--part", part, "--count", str(count)]
            settings = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", **KEEP_NOTHING}
            answer = subprocess.run(
                [*one, "--work", str(work)],
                env={**os.environ, **settings},
                stdout=subprocess.PIPE,
                check=False,
            )
            if answer.returncode != 0:
                raise UserError(f"ended with code {answer.returncode}", part, "See above for its traceback")
            write_text(kept, answer.stdout.decode())
        found[part] = {"commit": record["commit"], **json.loads(kept.read_text(encoding="utf-8"))}
        if lines := found[part].pop("log", None):
            write_text(chosen.out / f"{part}.log", "\n".join(lines) + "\n")
            print("\n".join(lines))
        print(f"{part}: {json.dumps(found[part])}", flush=True)
    kept_of_run = {name: record[name] for name in ("command", "commit", "versions", "machine")}
    whole = {"run": kept_of_run, "parts": found, "faults": faults(found)}
    write_text(file, json.dumps(whole, indent=1) + "\n")
    write_text(chosen.out / "README.md", page(whole))
    for fault in whole["faults"]:
        print(fault, file=sys.stderr)
    print(f"Written: {chosen.out / 'README.md'}")
    return 1 if whole["faults"] else 0


def main() -> int:
    """Reads the arguments and runs all parts, or one."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--campaign", type=int, default=200, help="rounds of the campaign that is killed")
    parser.add_argument("--kills", type=int, default=50, help="of each command")
    parser.add_argument("--met", type=int, default=4, help="how often each command meets each obstacle")
    parser.add_argument("--out", type=Path, default=Path("docs/results/endurance"))
    parser.add_argument("--work", type=Path, default=Path("runs/endurance"))
    parser.add_argument("--part", help="runs this part alone, and prints what it found")
    parser.add_argument("--count", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.part is None:
        return exit_code(lambda: run(chosen), "Interrupted; run the same command again to continue.")
    warnings.simplefilter("ignore")
    # What the package prints must not mix with the result.
    out = os.dup(1)
    os.dup2(2, 1)
    found = measured(chosen.part, chosen.count, chosen.work)
    os.write(out, json.dumps(found).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
