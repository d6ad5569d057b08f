#!/usr/bin/env python3
"""Hugging Face folders and GGUF files of the trained models. Needs numpy, not PyTorch.

Usage: export.py HF_FOLDER OUT.gguf NAME        bf16 weights to a Q8_0 GGUF file
"""

import json
import pathlib
import shutil
import struct
import sys

import numpy

LICENSE = "mit"
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
NORMAL, CONTROL = 1, 3
TYPE_F32, TYPE_Q8_0, FILE_Q8_0 = 0, 8, 7
ALIGNMENT, BLOCK = 32, 32


def write_safetensors(path, tensors):
    """tensors: name to bf16 bits (uint16)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, bits in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(bits.shape), "data_offsets": [offset, offset + bits.nbytes]}
        offset += bits.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for bits in tensors.values():
            file.write(numpy.ascontiguousarray(bits).tobytes())


def read_safetensors(path):
    """name to float32."""
    raw = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    out = {}
    for name, about in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + n for n in about["data_offsets"])
            bits = numpy.frombuffer(raw[begin:end], dtype=numpy.uint16).astype(numpy.uint32) << 16
            out[name] = bits.view(numpy.float32).reshape(about["shape"])
    return out


def write_hf(folder, config, tensors, tokenizer):
    """config: model.Config; tensors: HF name to bf16 bits; tokenizer: the folder of its files."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": config.dim,
        "intermediate_size": config.hidden, "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads, "head_dim": config.head_dim, "vocab_size": config.vocab,
        "max_position_embeddings": config.context, "rms_norm_eps": config.eps, "rope_theta": config.theta,
        "rope_scaling": None, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": [0, 2], "torch_dtype": "bfloat16",
    }
    generation = {"bos_token_id": 0, "eos_token_id": [0, 2], "do_sample": True, "temperature": 0.7, "top_p": 0.9}
    (folder / "config.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(tokenizer) / name, folder / name)
    write_safetensors(folder / "model.safetensors", tensors)


def quantize_q8_0(matrix):
    """Scales (f16) and integers of blocks of 32, as ggml's reference does it."""
    blocks = matrix.reshape(-1, BLOCK).astype(numpy.float32)
    scale = numpy.abs(blocks).max(axis=1, keepdims=True) / numpy.float32(127)
    with numpy.errstate(divide="ignore"):
        inverse = numpy.where(scale > 0, numpy.float32(1) / scale, 0).astype(numpy.float32)
    scaled = blocks * inverse
    levels = numpy.trunc(scaled + numpy.copysign(numpy.float32(0.5), scaled)).astype(numpy.int8)
    return scale.astype(numpy.float16), levels


def q8_0_bytes(matrix):
    scale, levels = quantize_q8_0(matrix)
    return numpy.concatenate((scale.view(numpy.uint8), levels.view(numpy.uint8)), axis=1).tobytes()


def q8_0_values(matrix):
    scale, levels = quantize_q8_0(matrix)
    return (scale.astype(numpy.float32) * levels).reshape(matrix.shape)


def neighbours(matrix, heads):
    """Rows of q or k from halves (i with i + width / 2) to pairs of neighbours, as GGUF has them for "llama"."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


GGUF_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    if name.startswith("model.layers."):
        number, rest = name[len("model.layers.") :].split(".", 1)
        return f"blk.{number}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"
    return {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[name]


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array_pair(key, kind, values):
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(scalar(kind, v) for v in values)


def metadata(name, folder):
    c = json.loads((folder / "config.json").read_text())
    document = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    vocab = document["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    special = {t["id"] for t in document["added_tokens"]}
    return [
        pair("general.architecture", STRING, "llama"),
        pair("general.name", STRING, name),
        pair("general.license", STRING, LICENSE),
        pair("general.file_type", U32, FILE_Q8_0),
        pair("general.quantization_version", U32, 2),
        pair("llama.block_count", U32, c["num_hidden_layers"]),
        pair("llama.context_length", U32, c["max_position_embeddings"]),
        pair("llama.embedding_length", U32, c["hidden_size"]),
        pair("llama.feed_forward_length", U32, c["intermediate_size"]),
        pair("llama.attention.head_count", U32, c["num_attention_heads"]),
        pair("llama.attention.head_count_kv", U32, c["num_key_value_heads"]),
        pair("llama.attention.layer_norm_rms_epsilon", F32, c["rms_norm_eps"]),
        pair("llama.rope.dimension_count", U32, c["head_dim"]),
        pair("llama.rope.freq_base", F32, c["rope_theta"]),
        pair("llama.vocab_size", U32, c["vocab_size"]),
        pair("tokenizer.ggml.model", STRING, "gpt2"),
        pair("tokenizer.ggml.pre", STRING, "llama-bpe"),
        array_pair("tokenizer.ggml.tokens", STRING, tokens),
        array_pair("tokenizer.ggml.token_type", I32, [CONTROL if i in special else NORMAL for i in range(len(tokens))]),
        array_pair("tokenizer.ggml.merges", STRING, document["model"]["merges"]),
        pair("tokenizer.ggml.bos_token_id", U32, vocab[settings["bos_token"]]),
        pair("tokenizer.ggml.eos_token_id", U32, vocab["<|endoftext|>"]),
        pair("tokenizer.ggml.eot_token_id", U32, vocab["<|im_end|>"]),
        pair("tokenizer.ggml.padding_token_id", U32, vocab[settings["pad_token"]]),
        pair("tokenizer.ggml.add_bos_token", BOOL, True),
        pair("tokenizer.chat_template", STRING, settings["chat_template"]),
    ]


def gguf_tensors(folder):
    """(name, dims innermost first, type, bytes) of every tensor."""
    c = json.loads((folder / "config.json").read_text())
    for name, value in read_safetensors(folder / "model.safetensors").items():
        if name.endswith("q_proj.weight"):
            value = neighbours(value, c["num_attention_heads"])
        elif name.endswith("k_proj.weight"):
            value = neighbours(value, c["num_key_value_heads"])
        if value.ndim == 1:
            yield gguf_name(name), value.shape, TYPE_F32, value.astype(numpy.float32).tobytes()
        else:
            yield gguf_name(name), value.shape[::-1], TYPE_Q8_0, q8_0_bytes(value)


def write_gguf(folder, out, name):
    folder = pathlib.Path(folder)
    keys, tensors = metadata(name, folder), list(gguf_tensors(folder))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    offset, body = 0, b""
    for tensor, dims, kind, raw in tensors:
        head += text(tensor) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", kind, offset)
        raw += b"\0" * (-len(raw) % ALIGNMENT)
        offset += len(raw)
        body += raw
    pathlib.Path(out).write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + body)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    write_gguf(*sys.argv[1:])


if __name__ == "__main__":
    main()
