#!/usr/bin/env python3
"""Trains the byte-level BPE tokenizer of the demo models, and encodes text with it.

Usage: tokenizer.py train OUT_FOLDER TEXT...      writes tokenizer.json and tokenizer_config.json

The pre-tokenizer is Llama 3's pattern; a piece that is a token as a whole is taken as it is
("ignore_merges", as GGUF's "llama-bpe" has it). Needs nothing but Python's standard library.
"""

import collections
import heapq
import json
import pathlib
import re
import sys
import unicodedata

VOCAB = 6144
END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [END, START, STOP] + [f"<|reserved_{i}|>" for i in range(5)]
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
RARE = 3  # words seen less often teach no merges


def char_class(kind):
    """The inside of a regex class with every character whose Unicode category starts with kind."""
    parts, first, last = [], None, None
    for code in range(0x30000):
        if unicodedata.category(chr(code)).startswith(kind):
            if last != code - 1:
                if first is not None:
                    parts.append((first, last))
                first = code
            last = code
    parts.append((first, last))
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in parts)


def compile_pattern():
    letters, numbers = char_class("L"), char_class("N")
    text = PATTERN
    text = text.replace(r"\p{L}+", f"[{letters}]+").replace(r"\p{N}{1,3}", f"[{numbers}]{{1,3}}")
    return re.compile(text.replace(r"\p{L}", letters).replace(r"\p{N}", numbers))


def byte_spelling():
    """GPT-2's printable character for every byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelling = {b: chr(b) for b in plain}
    for b in range(256):
        spelling.setdefault(b, chr(256 + len(spelling) - len(plain)))
    return spelling


def count_words(paths):
    pattern, special = compile_pattern(), re.compile("|".join(map(re.escape, SPECIAL)))
    counts = collections.Counter()
    for path in paths:
        for text in special.split(pathlib.Path(path).read_text("utf-8")):
            counts.update(pattern.findall(text))
    return counts


def learn_merges(counts, number):
    """The merges as pairs of byte strings, best first; ties go to the smaller pair."""
    words = [[bytes([b]) for b in word.encode()] for word, n in counts.items() if n >= RARE]
    times = [n for n in counts.values() if n >= RARE]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += times[i]
            where[pair].add(i)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < number:
        count, best = heapq.heappop(heap)
        if pairs[best] != -count:  # changed since it was pushed, and pushed again then
            continue
        merges.append(best)
        changed = set()
        for i in where.pop(best):
            word, n = words[i], times[i]
            for pair in zip(word, word[1:]):
                pairs[pair] -= n
                changed.add(pair)
            words[i] = word = merge(word, best)
            for pair in zip(word, word[1:]):
                pairs[pair] += n
                where[pair].add(i)
                changed.add(pair)
        for pair in changed - {best}:
            heapq.heappush(heap, (-pairs[pair], pair))
    return merges


def merge(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and word[i] == pair[0] and word[i + 1] == pair[1]:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def write_files(folder, merges):
    spelling = byte_spelling()
    spell = lambda data: "".join(spelling[b] for b in data)
    tokens = SPECIAL + [spelling[b] for b in range(256)] + [spell(a + b) for a, b in merges]
    if len(set(tokens)) != len(tokens):
        sys.exit("tokenizer: two merges make the same token")
    bos = {"SpecialToken": {"id": END, "type_id": 0}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for i, t in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
            {**byte_level, "use_regex": False}]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {END: {"id": END, "ids": [0], "tokens": [END]}}},
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": True, "vocab": {t: i for i, t in enumerate(tokens)},
            "merges": [f"{spell(a)} {spell(b)}" for a, b in merges]}}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": STOP,
        "pad_token": END, "model_max_length": 2048, "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


class Tokenizer:
    """Encodes as the engine does: special tokens spelt in the text become those tokens."""

    def __init__(self, folder):
        model = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text())["model"]
        byte_of = {c: b for b, c in byte_spelling().items()}
        raw = lambda text: bytes(byte_of[c] for c in text)
        self.spelt = sorted(model["vocab"], key=model["vocab"].get)
        self.merges = [tuple(m.split(" ")) for m in model["merges"]]
        self.bytes = [t.encode() if t in SPECIAL else raw(t) for t in self.spelt]
        self.ids = {t: i for i, t in enumerate(self.bytes) if i >= len(SPECIAL)}
        self.special = {t: i for i, t in enumerate(SPECIAL)}
        self.rank = {(raw(a), raw(b)): i for i, (a, b) in enumerate(self.merges)}
        self.pattern = compile_pattern()
        self.splitter = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
        self.known = {}

    def encode_piece(self, piece):
        data = piece.encode()
        if data in self.ids:
            return [self.ids[data]]
        word = [bytes([b]) for b in data]
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda p: self.rank.get(p, 1 << 30))
            if best not in self.rank:
                break
            word = merge(word, best)
        return [self.ids[t] for t in word]

    def encode(self, text):
        out, known = [], self.known
        for part in self.splitter.split(text):
            if part in self.special:
                out.append(self.special[part])
                continue
            for piece in self.pattern.findall(part):
                ids = known.get(piece)
                if ids is None:
                    ids = known[piece] = self.encode_piece(piece)
                out.extend(ids)
        return out

    def decode(self, ids):
        return b"".join(self.bytes[i] for i in ids).decode("utf-8", "replace")


def main():
    if len(sys.argv) < 4 or sys.argv[1] != "train":
        sys.exit(__doc__)
    counts = count_words(sys.argv[3:])
    print(f"{sum(counts.values())} words, {len(counts)} different", flush=True)
    write_files(sys.argv[2], learn_merges(counts, VOCAB - len(SPECIAL) - 256))


if __name__ == "__main__":
    main()
