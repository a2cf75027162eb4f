#!/usr/bin/env python3
"""Sells out an event on a cluster with one and with two processes of each role; then lets people wait. Prints
purchases per second, and the processor time that a purchase and a poll cost each role and server.

    scripts/bench-replicas.py [--program target/release/urr] [--seats 4000]

All processes, their servers and the buyers share this machine, so the processor time of a purchase, not the
purchases per second, says how far more machines carry.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import tempfile

NO_FAULTS = ["--kills", "0", "--stops", "0", "--cuts", "0", "--within", "1"]
WAITING_FANS = 2000


def run(program, *words, cwd):
    outcome = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise SystemExit(f"urr {' '.join(words)}: {outcome.stdout}{outcome.stderr}")
    return outcome.stdout


def cpu_seconds(program, folder):
    """By role and server."""
    members = json.loads(run(program, "cluster", "status", "--json", cwd=folder))["members"]
    sums = collections.Counter()
    for member in members:
        sums[member["name"].split("-")[0]] += member["cpuMs"] / 1000
    return sums


def rehearse(program, replicas, threshold, rush):
    """The report of a rush on a new cluster, and the processor seconds that it cost."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        settings = [f"queue.threshold={threshold}", "queue.admission_interval_ms=100"]
        settings = [word for setting in settings for word in ("--set", setting)]
        run(program, "cluster", "up", "--detach", "--replicas", str(replicas), *settings, cwd=folder)
        try:
            before = cpu_seconds(program, folder)
            run(program, "rush", "chaos", "--cluster", "cluster", *NO_FAULTS, *rush, cwd=folder)
            after = cpu_seconds(program, folder)
        finally:
            run(program, "cluster", "down", cwd=folder)
        report = json.loads((pathlib.Path(folder) / "chaos-report.json").read_text())
    return report, {name: after[name] - before[name] for name in after}


def sell(program, replicas, seats):
    rush = ["--fans", str(seats * 2), "--seats", str(seats), "--until-sold-out", "--pauses", "0.1"]
    report, cpu = rehearse(program, replicas, 200, rush)
    first = next(number for number, second in enumerate(report["seconds"]) if second["seatsSold"] > 0)
    took = report["lastSaleSecond"] - first + 1
    return report["outcomes"]["bought"], took, cpu


def wait(program):
    """One is inside and takes long, the others poll."""
    rush = ["--fans", str(WAITING_FANS), "--seats", "1000", "--pauses", "300", "--max-minutes", "1"]
    report, cpu = rehearse(program, 1, 1, rush)
    polls = next(operation for operation in report["operations"] if operation["name"] == "poll")
    return polls["done"], cpu


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="target/release/urr", type=pathlib.Path)
    arguments.add_argument("--seats", default=4000, type=int)
    options = arguments.parse_args()
    program = str(options.program.resolve())
    columns = []
    print(f"{os.cpu_count()} cores")
    for replicas in (1, 2):
        purchases, took, cpu = sell(program, replicas, options.seats)
        print(f"{replicas} of each: {purchases} purchases in {took} s, {purchases / took:.0f}/s", flush=True)
        columns.append({name: seconds * 1000 / purchases for name, seconds in cpu.items()})
    polls, cpu = wait(program)
    print(f"1 of each: {polls} polls")
    columns.append({name: seconds * 1000 / polls for name, seconds in cpu.items()})
    print("ms of a processor      purchase, 1   purchase, 2          poll")
    for name in sorted(columns[1], key=columns[1].get, reverse=True):
        print(f"{name:<18}" + "".join(f"{column[name]:>16.2f}" for column in columns))
    print(f"{'sum':<18}" + "".join(f"{sum(column.values()):>16.2f}" for column in columns))


if __name__ == "__main__":
    main()
