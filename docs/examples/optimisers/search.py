"""Changes a solution at random, keeps what is better: python search.py PROBLEM SOLUTION.cu COUNT.

Better is faster where there is a GPU; elsewhere fewer executed instructions, which is not a time.
"""

import random
import re
import sys
from collections import Counter
from pathlib import Path

from kernelexp import api

CHANGES = {
    r"BLOCK = \d+": ["BLOCK = 32", "BLOCK = 128", "BLOCK = 512", "BLOCK = 2048"],
    r"ITEMS = \d+": ["ITEMS = 1", "ITEMS = 4", "ITEMS = 8"],
    r"Real = \w+": ["Real = float", "Real = double", "Real = short"],
    r"if \(.* < n\) ": [""],
}


def judge(text):
    Path("candidate.cu").write_text(text)
    assessed = api.assess(sys.argv[1], "candidate.cu", largest=4096)
    effort = sum(kernel.thread_instructions for kernel in assessed.kernels)
    return (assessed.score, api.reward(assessed), -effort), assessed


best, ended = Path(sys.argv[2]).read_text(), Counter()
most = first = judge(best)[0]
for _ in range(int(sys.argv[3])):
    pattern, texts = random.choice(list(CHANGES.items()))
    candidate = re.sub(pattern, random.choice(texts), best)
    worth, assessed = judge(candidate)
    ended[assessed.stages[-1].name] += 1
    print("better," if worth > most else "no,", assessed.status, assessed.sentence)
    best, most = (candidate, worth) if worth > most else (best, most)
print(f"{best}\nfrom {first} to {most}\nlast stages: {dict(ended)}")
