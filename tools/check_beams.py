#!/usr/bin/env python3
"""Compares beam search with what HF transformers' generate() returned.

Usage: check_beams.py PROGRAM MODELS CASES.json [FLAG...]

PROGRAM is vitrine, MODELS a folder of model folders with a golden.json each (its `ids` begin the prompts), CASES.json
has the cases: model, prompt (so many ids), beams, returned, length_penalty, early_stopping, eos, max_new_tokens, and
what was found: sequences (with their end token) and scores. FLAGs go to the program (--backend ref).

Equal: the same sequences, scores within 1e-4 (and a millionth of the score: that is what its own f32 rounds); where two scores differ by less than that their order is free.
"""

import json
import os
import subprocess
import sys

TOLERANCE = 1e-4


def run(program, models, case, flags):
    folder = os.path.join(models, case["model"])
    with open(os.path.join(folder, "golden.json")) as file:
        ids = json.load(file)["ids"][: case["prompt"]]
    early = case["early_stopping"]
    command = [program, "generate", folder, "--ids", ",".join(map(str, ids)),
               "--beams", str(case["beams"]), "--num-return", str(case["returned"]),
               "--length-penalty", str(case["length_penalty"]),
               "--early-stopping", early if isinstance(early, str) else str(early).lower(),
               "--eos", ",".join(map(str, case["eos"])),
               "--max-tokens", str(case["max_new_tokens"]), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["beams"]


def difference(found, case):
    """What differs, or None."""
    if len(found) != len(case["sequences"]):
        return f"{len(found)} texts, wanted {len(case['sequences'])}"
    for i, (beam, score) in enumerate(zip(found, case["scores"])):
        if abs(beam["score"] - score) > TOLERANCE + 1e-6 * abs(score):
            return f"text {i}: score {beam['score']}, wanted {score}"
        alike = [s for s, other in zip(case["sequences"], case["scores"])
                 if abs(other - score) < TOLERANCE]
        if beam["tokens"] not in alike:
            return f"text {i}: {beam['tokens']}, wanted {case['sequences'][i]}"
    return None


def main():
    program, models, path, *flags = sys.argv[1:]
    with open(path) as file:
        cases = json.load(file)["cases"]
    equal = {}
    for i, case in enumerate(cases):
        try:
            wrong = difference(run(program, models, case, flags), case)
        except RuntimeError as error:
            wrong = str(error)
        good, all_ = equal.get(case["model"], (0, 0))
        equal[case["model"]] = (good + (wrong is None), all_ + 1)
        if wrong:
            print(f"case {i}, {case['model']}: {wrong}")
    for model, (good, all_) in equal.items():
        print(f"{model}: {good} of {all_} equal")
    sys.exit(0 if all(good == all_ for good, all_ in equal.values()) else 1)


if __name__ == "__main__":
    main()
