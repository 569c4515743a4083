"""Solutions of public problems through `kernelexp evaluate`: a line for each, and where they ended.

    python benchmarks/public_tasks.py PAIRS RESULTS.jsonl [OPTION ...]

Each line of PAIRS is a problem and a solution, from its folder; OPTIONs are those of evaluate.
RESULTS.jsonl keeps what was printed: a pair that is in it is not judged again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LIMIT_S = 1200.0


def pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            problem, solution = line.split()
            yield problem, solution


def judge(folder: Path, problem: str, solution: str, options: Sequence[str]) -> dict[str, Any]:
    argv = [sys.executable, "-m", "kernelexp", "evaluate", problem, solution, "--json", *options]
    begun = time.monotonic()
    paths = {"problem": problem, "solution": solution}
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {**paths, "seconds": LIMIT_S, "fault": "it had not ended"}
    seconds = round(time.monotonic() - begun, 1)
    try:
        return {**paths, "seconds": seconds, "code": done.returncode, **json.loads(done.stdout)}
    except ValueError:
        words = done.stderr.strip().splitlines() or ["no word"]
        return {**paths, "seconds": seconds, "code": done.returncode, "fault": words[-1]}


def line(one: dict[str, Any]) -> str:
    last = one["stages"][-1] if "stages" in one else {"name": "none", "outcome": "fault"}
    timed = "".join(
        f"; {case['name']}: {case['time_us']:.1f} us, reference {case['reference_us']:.1f}, "
        f"{1 / case['ratio']:.2f} ({1 / case['high']:.2f} to {1 / case['low']:.2f})"
        for case in one.get("times", ())
    )
    words = one.get("sentence") or one.get("fault", "")
    name = f"{Path(one['problem']).stem} {Path(one['solution']).name}"
    return f"{name}: {last['name']} {last['outcome']}, {one['seconds']} s: {words}{timed}"


def main(path: Path, results: Path, options: Sequence[str]) -> None:
    known = (
        [json.loads(text) for text in results.read_text().splitlines()] if results.exists() else []
    )
    done = {(one["problem"], one["solution"]): one for one in known}
    for pair in pairs(path):
        if pair not in done:
            done[pair] = judge(path.parent, *pair, options)
            with results.open("a") as file:
                file.write(json.dumps(done[pair]) + "\n")
        print(line(done[pair]), flush=True)
    ended = Counter(
        f"{one['status']} ({one['reason']})" if "status" in one else "fault"
        for one in done.values()
    )
    print(", ".join(f"{count} {name}" for name, count in ended.most_common()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
