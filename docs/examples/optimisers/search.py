"""A small evolutionary search: python search.py PROBLEM SOLUTION.cu GENERATIONS [CHILDREN].

Children are random changes of the best so far. Faster is better where there is a GPU; elsewhere
fewer executed instructions are, which is no time. What the model puts surely behind the best
modelled time is not timed: the search asks for that.
"""

import random
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernelexp import api

CHANGES = {
    r"BLOCK = \d+": [f"BLOCK = {n}" for n in (32, 64, 128, 256, 512, 1024, 2048)],
    r"ITEMS = \d+": [f"ITEMS = {n}" for n in (1, 2, 4, 8)],
    r"Real = \w+": ["Real = float", "Real = double", "Real = short"],
    r"if \(.* < n\) ": [""],
}
ended, spent = Counter(), Counter()


def change(text):
    for _ in range(random.choice((1, 1, 2))):
        pattern, texts = random.choice(list(CHANGES.items()))
        text = re.sub(pattern, random.choice(texts), text)
    return text


def judge(number, text, prune_us=0.0):
    """How good it is, and what became of it."""
    path = Path(f"candidate-{number}.cu")
    path.write_text(text)
    a = api.assess(sys.argv[1], path, largest=4096, schedules=1, modelled=True, prune_us=prune_us)
    effort = sum(kernel.thread_instructions for kernel in a.kernels)
    speed = 1 / a.effect.high if a.effect else 0.0  # at least, so that noise is no gain
    return (a.score, speed, -effort), a


def summary():
    """How many each stage ended, and what it took of those that reached it."""
    left = number
    for name in ("rules", "build", "known", "emulate", "schedules", "model", "time"):
        each = spent[name] / max(1, left)
        left -= ended[name]
        print(f"{name:9} ended {ended[name]} of {left + ended[name]}, {each:.1f} s each")
    print(f"from {first} to {most}", flush=True)


best = Path(sys.argv[2]).read_text()
most, assessed = first, _ = judge(0, best)
modelled_us = assessed.modelled.time_us if assessed.modelled else 0.0
number = 0
with ThreadPoolExecutor(4) as pool:
    for _ in range(int(sys.argv[3])):
        texts = [change(best) for _ in range(int((*sys.argv, 4)[4]))]
        numbers = range(number + 1, number + 1 + len(texts))
        number += len(texts)
        judged = pool.map(judge, numbers, texts, [modelled_us] * len(texts))
        for text, (worth, a) in zip(texts, judged, strict=True):
            print("better," if worth > most else "no,", a.status, a.sentence, flush=True)
            ended.update(stage.name for stage in a.stages if stage.outcome == "failed")
            spent.update({stage.name: stage.seconds for stage in a.stages})
            if worth > most:
                best, most = text, worth
                modelled_us = a.modelled.time_us if a.modelled else modelled_us
        summary()
print(best)
