#!/usr/bin/env python3
"""Sends the parsing cases of the public JSONTestSuite to a running server as request bodies.

    tools/json_parsing_suite.py http://127.0.0.1:8080 SUITE/test_parsing

y_ files must be accepted as JSON (the server may refuse them for other reasons), n_ files must not,
i_ files are only counted. Exits 1 if an answer is wrong.
"""
import collections
import json
import pathlib
import sys
import urllib.error
import urllib.request


def is_json(url, body):
    request = urllib.request.Request(url + "/v1/completions", data=body,
                                     headers={"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=30).read()
        return True
    except urllib.error.HTTPError as error:
        answer = json.loads(error.read())["error"]
        return answer.get("code") != "invalid_json"


def main():
    url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    counts = collections.Counter()
    wrong = 0
    for path in sorted(folder.glob("*.json")):
        taken = is_json(url, path.read_bytes())
        kind = path.name[0]
        counts[kind, taken] += 1
        if (kind == "y" and not taken) or (kind == "n" and taken):
            wrong += 1
            print(f"{path.name}: {'taken' if taken else 'refused'}")
    for (kind, taken), n in sorted(counts.items()):
        print(f"{kind}_: {n} {'taken' if taken else 'refused'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
