#!/usr/bin/env python3
"""Tiny tokenizers of four kinds with reference encodings, for the tests of src/tokenizer.

    make_tokenizer_fixtures.py OUTDIR

Each folder gets a tokenizer.json and a vectors.json of [{text, ids, decoded}]. The encodings come from
the naive algorithms below (quadratic, ASCII-only word splitting), not from the code under test.
"""
import json
import math
import os
import re
import sys

TEXT = """the cat sat on the mat. the other cat sat there, then the cats ate the rats at the store.
she sells sea shells on the sea shore; the shells she sells are sea shells, I'm sure. 12 34 1234 12345
"""
CASES = ["", " ", "the cat", " the cat", "the  cat sat", "shells!", "a\nb", "the rats at 12345 stores.",
         "don't they'll we've", "ABC xyz", "sea\n\n  shore", "trailing  ", "...!?", "sss", "she sells sea shells",
         "cats, rats; mats", "I'm 12 34", "zzz qqq", "th", "\tthe", "a  b   c    d"]
WIDE = ["caf\u00e9", "\u65e5\u672c the \u8a9e", "\U0001F600 cat", "na\u00efve \u2014 the"]

GPT2 = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_alphabet():
    plain = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table, extra = {}, 256
    for byte in range(256):
        if byte in plain:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(extra)
            extra += 1
    return table


def train(words, count):
    words, merges = [list(w) for w in words], []
    for _ in range(count):
        pairs = {}
        for w in words:
            for pair in zip(w, w[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        best = max(sorted(pairs), key=lambda p: pairs[p])
        merges.append(list(best))
        words = [apply(w, best) for w in words]
    return merges


def apply(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == tuple(pair):
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def bpe(word, merges):
    ranks, word = {tuple(m): i for i, m in enumerate(merges)}, list(word)
    while True:
        known = [p for p in zip(word, word[1:]) if p in ranks]
        if not known:
            return word
        pair = min(known, key=lambda p: ranks[p])
        at = next(i for i, p in enumerate(zip(word, word[1:])) if p == pair)
        word[at:at + 2] = [pair[0] + pair[1]]


def added(*contents):
    return [dict(id=i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
            for i, c in enumerate(contents)]


def save(out, name, tokenizer, encode, decode, cases):
    os.makedirs(os.path.join(out, name), exist_ok=True)
    with open(os.path.join(out, name, "tokenizer.json"), "w") as f:
        json.dump(tokenizer, f, ensure_ascii=True, separators=(",", ":"))
    vectors = []
    for text in cases:
        ids = encode(text)
        vectors.append(dict(text=text, ids=ids, decoded=decode(ids)))
    with open(os.path.join(out, name, "vectors.json"), "w") as f:
        json.dump(vectors, f, ensure_ascii=True, separators=(",", ":"))


def byte_bpe(out):
    table = byte_alphabet()
    back = {c: b for b, c in table.items()}
    spell = lambda text: "".join(table[b] for b in text.encode())
    merges = train([spell(w) for w in GPT2.findall(TEXT)], 60)
    tokens = ["<|bos|>", "<|eos|>"] + [table[b] for b in range(256)] + ["".join(m) for m in merges]
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    names = {i: t for t, i in vocab.items()}
    tokenizer = dict(
        version="1.0", added_tokens=added("<|bos|>", "<|eos|>"), normalizer=None,
        pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
        post_processor=dict(type="TemplateProcessing",
                            single=[{"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
                                    {"Sequence": {"id": "A", "type_id": 0}}],
                            pair=[], special_tokens={"<|bos|>": {"id": "<|bos|>", "ids": [0], "tokens": ["<|bos|>"]}}),
        decoder=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
        model=dict(type="BPE", vocab=vocab, merges=merges))
    encode = lambda text: [vocab[t] for w in GPT2.findall(text) for t in bpe(spell(w), merges)]
    decode = lambda ids: bytes(back[c] for i in ids for c in names[i]).decode()
    save(out, "byte_bpe", tokenizer, encode, decode, CASES)


def spm_bpe(out):
    mark = "\u2581"
    words = [mark + w for w in TEXT.replace("\n", " ").split(" ") if w]
    merges = train(words, 60)
    letters = sorted(set("".join(words)) | set("ABCIxyz"))
    tokens = (["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + letters +
              ["".join(m) for m in merges])
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    names = {i: t for t, i in vocab.items()}
    tokenizer = dict(
        version="1.0", added_tokens=added("<unk>", "<s>", "</s>"),
        normalizer=dict(type="Sequence", normalizers=[dict(type="Prepend", prepend=mark),
                                                      dict(type="Replace", pattern={"String": " "}, content=mark)]),
        pre_tokenizer=None, post_processor=None,
        decoder=dict(type="Sequence", decoders=[dict(type="Replace", pattern={"String": mark}, content=" "),
                                                dict(type="ByteFallback"), dict(type="Fuse"),
                                                dict(type="Strip", content=" ", start=1, stop=0)]),
        model=dict(type="BPE", unk_token="<unk>", fuse_unk=True, byte_fallback=True, vocab=vocab,
                   merges=[" ".join(m) for m in merges]))

    def encode(text):
        if not text:
            return []
        symbols = []
        for c in mark + text.replace(" ", mark):
            symbols += [c] if c in vocab else [f"<0x{b:02X}>" for b in c.encode()]
        return [vocab[t] for t in bpe(symbols, merges)]

    def decode(ids):
        data = b""
        for i in ids:
            t = names[i]
            data += bytes([int(t[3:5], 16)]) if re.fullmatch("<0x..>", t) else t.replace(mark, " ").encode()
        text = data.decode()
        return text[1:] if text.startswith(" ") else text

    save(out, "spm_bpe", tokenizer, encode, decode, CASES + WIDE)


def unigram(out):
    mark = "\u2581"
    words = [mark + w for w in TEXT.replace("\n", " ").split(" ") if w]
    counts = {}
    for w in words:
        for i in range(len(w)):
            for j in range(i + 1, min(len(w), i + 6) + 1):
                counts[w[i:j]] = counts.get(w[i:j], 0) + 1
    pieces = [p for p in counts if len(p) == 1] + sorted((p for p in counts if len(p) > 1 and counts[p] > 2),
                                                         key=lambda p: (-counts[p] * len(p), p))[:80]
    total = sum(counts[p] for p in pieces)
    # Distinct scores, so that no two segmentations tie.
    vocab = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + [
        [p, round(math.log(counts[p] * len(p) / total) - i * 1e-3, 6)] for i, p in enumerate(pieces)]
    ids_of = {t: i for i, (t, _) in enumerate(vocab)}
    unknown = min(s for _, s in vocab) - 10.0
    meta = dict(type="Metaspace", replacement=mark, prepend_scheme="always", split=True)
    tokenizer = dict(version="1.0", added_tokens=added("<pad>", "</s>", "<unk>"), normalizer=dict(type="NFKC"),
                     pre_tokenizer=meta, decoder=meta,
                     post_processor=dict(type="TemplateProcessing",
                                         single=[{"Sequence": {"id": "A", "type_id": 0}},
                                                 {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                                         pair=[], special_tokens={"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}),
                     model=dict(type="Unigram", unk_id=2, vocab=vocab, byte_fallback=False))

    def segment(word):
        best = [(0.0, [])] + [(-math.inf, None)] * len(word)
        for i in range(len(word)):
            single = False
            for j in range(i + 1, len(word) + 1):
                piece = word[i:j]
                if piece in ids_of and ids_of[piece] > 2:
                    single = single or j == i + 1
                    score = best[i][0] + vocab[ids_of[piece]][1]
                    if score > best[j][0]:
                        best[j] = (score, best[i][1] + [ids_of[piece]])
            if not single and best[i][0] + unknown > best[i + 1][0]:
                best[i + 1] = (best[i][0] + unknown, best[i][1] + [2])
        path = best[-1][1]
        return [t for k, t in enumerate(path) if not (t == 2 and k and path[k - 1] == 2)]

    def encode(text):
        if not text:
            return []
        text = text.replace(" ", mark)
        if not text.startswith(mark):
            text = mark + text
        return [t for w in re.findall(mark + "[^" + mark + "]*", text) for t in segment(w)]

    def decode(ids):
        return "".join(vocab[t][0].replace(mark, "" if k == 0 else " ") for k, t in enumerate(ids))

    save(out, "unigram", tokenizer, encode, decode, CASES)


def wordpiece(out):
    words = sorted(set(re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", TEXT.lower())))
    letters = sorted(set("".join(words)))
    tokens = (["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + letters + ["##" + c for c in letters] +
              ["the", "cat", "sat", "sea", "she", "##lls", "##s", "##re", "st", "##ore", "sh", "12", "##34", "##at"])
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    names = {i: t for t, i in vocab.items()}
    tokenizer = dict(version="1.0", added_tokens=added("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
                     normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True,
                                     strip_accents=None, lowercase=True),
                     pre_tokenizer=dict(type="BertPreTokenizer"),
                     post_processor=dict(type="BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2]),
                     decoder=dict(type="WordPiece", prefix="##", cleanup=True),
                     model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##",
                                max_input_chars_per_word=20, vocab=vocab))

    def pieces(word):
        got, at = [], 0
        while at < len(word):
            for end in range(len(word), at, -1):
                t = ("##" if at else "") + word[at:end]
                if t in vocab:
                    got.append(vocab[t])
                    at = end
                    break
            else:
                return [1]
        return got if len(word) <= 20 else [1]

    def encode(text):
        return [i for w in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower()) for i in pieces(w)]

    def decode(ids):
        text = ""
        for k, i in enumerate(ids):
            t = names[i]
            t = t if k == 0 else t[2:] if t.startswith("##") else " " + t
            for a in (" .", " ?", " !", " ,"):
                t = t.replace(a, a[1])
            text += t
        return text

    save(out, "wordpiece", tokenizer, encode, decode, CASES + ["CAT " + "s" * 21 + " cat"])


if __name__ == "__main__":
    for make in (byte_bpe, spm_bpe, unigram, wordpiece):
        make(sys.argv[1])
