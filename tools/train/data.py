#!/usr/bin/env python3
"""Makes the training data: synthetic text, the tokenizer, and every text as 16-bit token ids.

Usage: data.py CORPUS_FOLDER WORK_FOLDER

CORPUS_FOLDER has train.txt.xz and val.txt.xz. WORK_FOLDER gets text/, tokenizer/ and data/*.u16.xz
(prose, stories, dialogues, val). Needs numpy. What is there already is kept.
"""

import lzma
import multiprocessing
import pathlib
import subprocess
import sys

import numpy

from tokenizer import END, Tokenizer

SAMPLE = {"stories": 4_000_000, "dialogues": 10_000_000}  # characters of synthetic text the tokenizer learns from
PART = 4_000_000  # characters a worker encodes at a time
PACKING = [{"id": lzma.FILTER_LZMA2, "preset": 5, "lp": 1, "pb": 1}]  # for 16-bit numbers


def unpack(corpus, text):
    for name in ("train", "val"):
        if not (text / f"{name}.txt").exists():
            (text / f"{name}.txt").write_bytes(lzma.open(corpus / f"{name}.txt.xz").read())


def run(*args):
    subprocess.run([sys.executable, *map(str, args)], check=True)


def parts(text):
    """Cuts behind an end of paragraph or document, where the pre-tokenizer cuts too."""
    at = 0
    while at < len(text):
        end = text.find("\n\n", at + PART)
        mark = text.find(END, at + PART)
        if mark >= 0 and (end < 0 or mark < end):
            end = mark
        elif end >= 0:
            end += 2
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end


def encode_part(job):
    folder, text = job
    return numpy.array(Tokenizer(folder).encode(text), dtype=numpy.uint16)


def encode(work, source, name):
    out = work / "data" / f"{name}.u16.xz"
    if out.exists():
        return
    text = (work / "text" / f"{source}.txt").read_text("utf-8")
    with multiprocessing.Pool() as pool:
        ids = numpy.concatenate(pool.map(encode_part, [(work / "tokenizer", p) for p in parts(text)], 1))
    print(f"{name}: {len(text.encode())} bytes, {len(ids)} tokens, {len(text.encode()) / len(ids):.3f} bytes a token", flush=True)
    out.write_bytes(lzma.compress(ids.tobytes(), filters=PACKING))


def load(work, name):
    return numpy.frombuffer(lzma.open(pathlib.Path(work) / "data" / f"{name}.u16.xz").read(), dtype=numpy.uint16)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    corpus, work = map(pathlib.Path, sys.argv[1:])
    here = pathlib.Path(__file__).parent
    text = work / "text"
    for folder in (text, work / "data"):
        folder.mkdir(parents=True, exist_ok=True)
    unpack(corpus, text)
    if not (text / "dialogues.txt").exists():
        run(here / "synthetic.py", text)
    if not (work / "tokenizer" / "tokenizer.json").exists():
        samples = []
        for name, size in SAMPLE.items():
            samples.append(text / f"{name}.sample")
            samples[-1].write_text((text / f"{name}.txt").read_text("utf-8")[:size])
        run(here / "tokenizer.py", "train", work / "tokenizer", text / "train.txt", *samples)
    for source, name in (("val", "val"), ("train", "prose"), ("stories", "stories"), ("dialogues", "dialogues")):
        encode(work, source, name)


if __name__ == "__main__":
    main()
