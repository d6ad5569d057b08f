#!/usr/bin/env python3
"""Turns a llama2.c checkpoint and its tokenizer into one GGUF v3 file with F32 weights.

Usage: stories_to_gguf.py MODEL.bin TOKENIZER.bin OUT.gguf

MODEL.bin: seven little-endian int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size,
seq_len), then fp32 arrays: token embedding; stacked over the layers attention norm, wq, wk, wv, wo,
FFN norm, w1 (gate), w2 (down), w3 (up); final norm; two rotary tables, which are not needed; the
output matrix where vocab_size is negative. TOKENIZER.bin: int32, then per token fp32 score, int32
length, bytes. The checkpoint's rotary pairs are adjacent, as GGUF has them for "llama", so q and k
go over as they are.
"""

import pathlib
import struct
import sys

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
ALIGNMENT = 32
FIRST_BYTE_ID = 3


def text(value):
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    if kind == STRING:
        return text(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array_pair(key, kind, values):
    head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    return head + b"".join(scalar(kind, v) for v in values)


def read_tokens(data, vocab):
    """Pieces in SentencePiece spelling, scores and types."""
    pieces, scores, types = [], [], []
    at = 4
    for i in range(vocab):
        score, length = struct.unpack_from("<fi", data, at)
        raw = data[at + 8 : at + 8 + length]
        at += 8 + length
        if i < FIRST_BYTE_ID:
            piece, kind = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)][i]
        elif i < FIRST_BYTE_ID + 256:
            piece, kind = f"<0x{i - FIRST_BYTE_ID:02X}>", BYTE
        else:
            piece = raw.decode("utf-8", "surrogateescape").replace(" ", "\u2581")
            kind = NORMAL
        pieces.append(piece)
        scores.append(score)
        types.append(kind)
    if at != len(data):
        sys.exit(f"tokenizer: {len(data) - at} bytes after token {vocab - 1}")
    return pieces, scores, types


def read_weights(data):
    """The seven settings, and (name, dims innermost first, bytes) of every tensor."""
    dim, hidden, layers, heads, kv_heads, vocab, context = struct.unpack_from("<7i", data)
    kv_dim = dim // heads * kv_heads
    at = 28

    def take(*shape):
        nonlocal at
        size = 4
        for n in shape:
            size *= n
        if at + size > len(data):
            sys.exit(f"model: {len(data)} bytes end inside the weights")
        at += size
        return data[at - size : at]

    tensors = [("token_embd.weight", (dim, abs(vocab)), take(abs(vocab), dim))]
    stacks = [
        ("attn_norm", (dim,)),
        ("attn_q", (dim, dim)),
        ("attn_k", (dim, kv_dim)),
        ("attn_v", (dim, kv_dim)),
        ("attn_output", (dim, dim)),
        ("ffn_norm", (dim,)),
        ("ffn_gate", (dim, hidden)),
        ("ffn_down", (hidden, dim)),
        ("ffn_up", (dim, hidden)),
    ]
    for name, dims in stacks:
        for layer in range(layers):
            tensors.append((f"blk.{layer}.{name}.weight", dims, take(*dims)))
    tensors.append(("output_norm.weight", (dim,), take(dim)))
    take(2, context, dim // heads // 2)
    if vocab < 0:
        tensors.append(("output.weight", (dim, -vocab), take(-vocab, dim)))
    if at != len(data):
        sys.exit(f"model: {len(data) - at} bytes after the last tensor")
    return (dim, hidden, layers, heads, kv_heads, abs(vocab), context), tensors


def metadata(name, settings, tokens):
    dim, hidden, layers, heads, kv_heads, vocab, context = settings
    pieces, scores, types = tokens
    return [
        pair("general.architecture", STRING, "llama"),
        pair("general.name", STRING, name),
        pair("llama.block_count", U32, layers),
        pair("llama.context_length", U32, context),
        pair("llama.embedding_length", U32, dim),
        pair("llama.feed_forward_length", U32, hidden),
        pair("llama.attention.head_count", U32, heads),
        pair("llama.attention.head_count_kv", U32, kv_heads),
        pair("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        pair("llama.rope.dimension_count", U32, dim // heads),
        pair("llama.rope.freq_base", F32, 10000.0),
        pair("llama.vocab_size", U32, vocab),
        pair("tokenizer.ggml.model", STRING, "llama"),
        array_pair("tokenizer.ggml.tokens", STRING, pieces),
        array_pair("tokenizer.ggml.scores", F32, scores),
        array_pair("tokenizer.ggml.token_type", I32, types),
        pair("tokenizer.ggml.bos_token_id", U32, 1),
        pair("tokenizer.ggml.eos_token_id", U32, 2),
        pair("tokenizer.ggml.unknown_token_id", U32, 0),
        pair("tokenizer.ggml.add_bos_token", BOOL, True),
        pair("tokenizer.ggml.add_space_prefix", BOOL, True),
    ]


def pad(size):
    return b"\0" * (-size % ALIGNMENT)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model, tokenizer, out = map(pathlib.Path, sys.argv[1:])
    settings, tensors = read_weights(model.read_bytes())
    keys = metadata(model.stem, settings, read_tokens(tokenizer.read_bytes(), settings[5]))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    offset = 0
    for name, dims, data in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", 0, offset)
        offset += len(data) + len(pad(len(data)))
    with out.open("wb") as file:
        file.write(head + pad(len(head)))
        for _, _, data in tensors:
            file.write(data + pad(len(data)))


if __name__ == "__main__":
    main()
