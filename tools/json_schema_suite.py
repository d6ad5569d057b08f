#!/usr/bin/env python3
"""Checks `vitrine match --json-schema` with the public JSON-Schema-Test-Suite.

    tools/json_schema_suite.py VITRINE SUITE/tests/draft2020-12

For every case: right, wrong, or refused at compile time (the refusals are listed by keyword).
format.json is left out: there "format" is an annotation, here it is enforced.
Exits 1 if a case is wrong.
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile


def match(program, schema, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(schema, file)
        file.flush()
        return subprocess.run(
            [program, "match", "--any-order", "--json-schema", file.name],
            input="".join(t + "\n" for t in texts), capture_output=True, text=True, timeout=60)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    counts = collections.Counter()
    refusals = collections.Counter()
    for path in sorted(folder.glob("*.json")):
        if path.name == "format.json":
            continue
        for group in json.loads(path.read_text()):
            cases = group["tests"]
            texts = [json.dumps(c["data"], ensure_ascii=False, separators=(",", ":")) for c in cases]
            result = match(program, group["schema"], texts)
            if result.returncode != 0 and "no value satisfies" not in result.stderr:
                counts["refused"] += len(cases)
                reason = result.stderr.strip().removeprefix("error: ").split(": ", 1)[-1]
                refusals[reason.split('"')[1] if '"' in reason else reason] += len(cases)
                if '"' not in reason:
                    print(f"{path.name}: {group['description']}: {result.stderr.strip()}")
                continue
            answers = result.stdout.split() if result.returncode == 0 else ["no"] * len(cases)
            for case, answer in zip(cases, answers, strict=True):
                right = (answer == "yes") == case["valid"]
                counts["right" if right else "wrong"] += 1
                if not right:
                    print(f"{path.name}: {group['description']}: {case['description']}: "
                          f"said {answer}, valid is {case['valid']}")
    for keyword, n in refusals.most_common():
        print(f"{n:5} cases refused for {keyword}")
    print(f"{counts['right']} right, {counts['wrong']} wrong, {counts['refused']} refused")
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
