"""The counts of a campaign, as text and as Markdown."""
import pathlib
import subprocess

import campaign
import judge

# How often each kind of run comes.
WEIGHTS = {"victims": 5, "strangers": 1, "limits": 1, "files": 1, "misuse": 1}


def commit():
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=pathlib.Path(__file__).resolve().parent,
                          capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def plain(outcomes):
    lines = []
    for kind, counter in sorted(campaign.counts(outcomes).items()):
        lines.append(f"{kind}: {sum(counter.values())} runs, "
                     + ", ".join(f"{counter[v]} {v}" for v in judge.VERDICTS if counter[v]))
    return "\n".join(lines)


def markdown(outcomes, options):
    columns = [judge.OK] + [v for v in judge.VERDICTS if v != judge.OK]
    rows = [f"| runs | number | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for kind, counter in sorted(campaign.counts(outcomes).items()):
        rows.append(f"| {kind} | {sum(counter.values())} | " + " | ".join(str(counter[v]) for v in columns) + " |")
    length = f"--minutes {options.minutes:g}" if options.minutes else f"--runs {options.runs}"
    only = "".join(f" --only {kind}" for kind in options.only or [])
    return (f"`tests/adversary/run {length} --seed {options.seed}{only} --jobs {options.jobs}`, commit {commit()}:\n\n"
            + "\n".join(rows) + "\n")
