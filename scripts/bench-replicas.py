#!/usr/bin/env python3
"""Sells out an event on a cluster with one and with two processes of each role; then lets people wait. Prints
purchases per second, and the processor time that a purchase and a poll cost each role and server.

    scripts/bench-replicas.py [--program target/release/urr] [--seats 4000] [--waiting 5000]

All processes, their servers and the buyers share this machine, so the processor time of a purchase, not the
purchases per second, says how far more machines carry. It is taken while the tickets between 10 and 90 % are
sold, without what the same processes take when nobody comes.
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

NO_FAULTS = ["--kills", "0", "--stops", "0", "--cuts", "0", "--within", "1"]
SETTLE_SECONDS = 10
IDLE_SECONDS = 20
WAIT_MINUTES = 1
PROGRESS = re.compile(r"\s*(\d+) s: ")


def run(program, *words, cwd):
    outcome = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise SystemExit(f"urr {' '.join(words)}: {outcome.stdout}{outcome.stderr}")
    return outcome.stdout


class Sampler(threading.Thread):
    """Asks each second how much processor time each role and server has taken."""

    def __init__(self, program, folder):
        super().__init__(daemon=True)
        self.program, self.folder = program, folder
        self.samples, self.ended = [], threading.Event()

    def run(self):
        while not self.ended.wait(1):
            answer = json.loads(run(self.program, "cluster", "status", "--json", cwd=self.folder))
            # It is null of one that is just being looked at; the neighbours in time will do.
            if any(member["cpuMs"] is None for member in answer["members"]):
                continue
            sums = collections.Counter()
            for member in answer["members"]:
                sums[member["name"].split("-")[0]] += member["cpuMs"] / 1000
            self.samples.append((time.monotonic(), sums))

    def at(self, moment):
        """The processor seconds by then; between two samples they grow evenly."""
        for (before, low), (after, high) in itertools.pairwise(self.samples):
            if before <= moment <= after:
                share = (moment - before) / (after - before)
                return {name: low[name] + share * (high[name] - low[name]) for name in high}
        raise SystemExit("the processor time of that moment is unknown")

    def between(self, start, end):
        before, after = self.at(start), self.at(end)
        return {name: after[name] - before[name] for name in after}


@contextlib.contextmanager
def cluster(program, replicas, threshold):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        settings = [f"queue.threshold={threshold}", "queue.admission_interval_ms=100"]
        settings = [word for setting in settings for word in ("--set", setting)]
        run(program, "cluster", "up", "--detach", "--replicas", str(replicas), *settings, cwd=folder)
        try:
            yield folder
        finally:
            run(program, "cluster", "down", cwd=folder)


def rush(program, folder, words):
    """Lets fans come. Returns the report and the moment when they began."""
    words = [program, "rush", "chaos", "--cluster", "cluster", *NO_FAULTS, *words]
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        begun, said = None, []
        for line in process.stderr:
            said.append(line)
            progress = PROGRESS.match(line)
            if progress and begun is None:
                begun = time.monotonic() - int(progress[1])
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {''.join(said)}")
    return json.loads((pathlib.Path(folder) / "chaos-report.json").read_text()), begun


def rehearse(program, replicas, threshold, words, part_of):
    """The report of a rush on a new cluster, and the processor seconds of the part of it that `part_of` finds
    in the report, beyond those of the same processes when nobody comes."""
    with cluster(program, replicas, threshold) as folder:
        sampler = Sampler(program, folder)
        sampler.start()
        time.sleep(SETTLE_SECONDS + IDLE_SECONDS)
        idle_until = time.monotonic() - 1
        report, begun = rush(program, folder, words)
        time.sleep(2)
        sampler.ended.set()
        sampler.join()
    start, end = part_of(report)
    idle = sampler.between(idle_until - IDLE_SECONDS + 2, idle_until)
    idle = {name: seconds / (IDLE_SECONDS - 2) for name, seconds in idle.items()}
    cpu = sampler.between(begun + start, begun + end)
    return report, {name: cpu[name] - idle[name] * (end - start) for name in cpu}, idle


def middle_of_sale(report):
    """From the second in which a tenth is sold to that in which nine tenths are."""
    sold = list(itertools.accumulate(second["seatsSold"] for second in report["seconds"]))
    first = next(second for second, sum in enumerate(sold, 1) if sum >= sold[-1] * 0.1)
    last = next(second for second, sum in enumerate(sold, 1) if sum >= sold[-1] * 0.9)
    return first, last


def operations(report, name):
    return next(operation["done"] for operation in report["operations"] if operation["name"] == name)


def sell(program, replicas, seats):
    """What a purchase costs."""
    fans = seats * 11 // 10
    words = ["--fans", str(fans), "--seats", str(seats), "--until-sold-out", "--pauses", "0.1"]
    report, cpu, idle = rehearse(program, replicas, 200, words, middle_of_sale)
    first, last = middle_of_sale(report)
    seats_then = sum(second["seatsSold"] for second in report["seconds"][first:last])
    purchases = report["outcomes"]["bought"] * seats_then / report["seatsSold"]
    polls = operations(report, "poll") / report["outcomes"]["bought"]
    print(
        f"{replicas} of each: {purchases:.0f} purchases in {last - first} s, {purchases / (last - first):.0f}/s, "
        f"{polls:.1f} polls each; {sum(idle.values()):.2f} processors when nobody comes",
        flush=True,
    )
    return {name: seconds * 1000 / purchases for name, seconds in cpu.items()}


def wait(program, waiting):
    """What a poll costs: one is inside and takes long, the others wait."""
    words = ["--fans", str(waiting), "--seats", "1000", "--pauses", "300", "--max-minutes", str(WAIT_MINUTES)]
    seconds = 60 * WAIT_MINUTES
    report, cpu, _ = rehearse(program, 1, 1, words, lambda report: (seconds / 3, seconds - 5))
    polls = operations(report, "poll") / report["secondsTotal"]
    print(f"1 of each: {waiting} wait and poll {polls:.0f} times a second", flush=True)
    polls *= seconds - 5 - seconds / 3
    return {name: seconds * 1000 / polls for name, seconds in cpu.items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="target/release/urr", type=pathlib.Path)
    arguments.add_argument("--seats", default=4000, type=int)
    arguments.add_argument("--waiting", default=5000, type=int)
    options = arguments.parse_args()
    program = str(options.program.resolve())
    print(f"{os.cpu_count()} cores")
    columns = [sell(program, replicas, options.seats) for replicas in (1, 2)]
    columns.append(wait(program, options.waiting))
    print("ms of a processor      purchase, 1   purchase, 2          poll")
    for name in sorted(columns[1], key=columns[1].get, reverse=True):
        print(f"{name:<18}" + "".join(f"{column[name]:>16.2f}" for column in columns))
    print(f"{'sum':<18}" + "".join(f"{sum(column.values()):>16.2f}" for column in columns))


if __name__ == "__main__":
    main()
