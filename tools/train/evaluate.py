#!/usr/bin/env python3
"""Measures trained models, and prints samples.

Usage: evaluate.py WORK OUT.json [--device cuda]

Bits per byte of a text: it is encoded as one string (<|endoftext|> in it is that token, nothing is added) and cut into
consecutive chunks of W - 1 tokens; each chunk runs separately after one <|endoftext|>, and every token of it is scored.
The sum of the negative log2 probabilities divided by the bytes of the text (UTF-8) is the figure. W is the window.
"""

import argparse
import functools
import json
import math
import pathlib

import numpy
import torch
import torch.nn.functional as F

import data
import export
from model import Config, Llama, hf_name
from tokenizer import START, STOP, Tokenizer

END, TURN_END = 0, 2
WINDOW = 1024
CHATS = [
    ["Hello!"], ["Who are you?"], ["What can you do?"], ["Tell me a story about a fox and a lantern."],
    ["Tell me a story about a robot."], ["Write a short story about a girl named Mia who is afraid of the dark."],
    ["Tell me a story about a dragon and a teapot."], ["Tell me a story about honesty."], ["What is the KV cache?"],
    ["Why is decode slower than prefill?"], ["What does temperature do?"], ["explain speculative decoding"],
    ["What is paged attention and why does it help?"], ["how does continuous batching work"], ["What is quantization?"],
    ["What is the difference between top-k and top-p?"], ["What is the capital of France?"], ["Thanks, goodbye!"],
]
TEXTS = ["Once upon a time", "The old man looked out of the window and", "\"I do not believe you,\" said the captain,"]


def load(folder, device, q8_0=False):
    """The model of a Hugging Face folder in float32; q8_0: as its GGUF file has it."""
    folder = pathlib.Path(folder)
    c = json.loads((folder / "config.json").read_text())
    model = Llama(Config(c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"],
                         c["head_dim"], c["intermediate_size"], c["vocab_size"], c["max_position_embeddings"]))
    weights = export.read_safetensors(folder / "model.safetensors")
    with torch.no_grad():
        for name, p in model.named_parameters():
            value = weights[hf_name(name)]
            p.copy_(torch.from_numpy(export.q8_0_values(value) if q8_0 and value.ndim == 2 else value.copy()))
            p.requires_grad_(False)
    return model.to(device).eval()


def windows(ids, size):
    """Batches of (inputs, targets, which targets count)."""
    chunks = [ids[i : i + size - 1] for i in range(0, len(ids), size - 1)]
    for i in range(0, len(chunks), 32):
        part = chunks[i : i + 32]
        targets = numpy.zeros((len(part), size - 1), dtype=numpy.int64)
        counts = numpy.zeros(targets.shape, dtype=bool)
        for row, chunk in enumerate(part):
            targets[row, : len(chunk)] = chunk
            counts[row, : len(chunk)] = True
        inputs = numpy.concatenate((numpy.full((len(part), 1), END), targets[:, :-1]), axis=1)
        yield torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(counts)


@torch.no_grad()
def bits(model, ids, size):
    device, total = next(model.parameters()).device, 0.0
    for inputs, targets, counts in windows(ids, size):
        losses = F.cross_entropy(model(inputs.to(device)).float().flatten(0, 1), targets.to(device).flatten(), reduction="none")
        total += losses.double()[counts.to(device).flatten()].sum().item()
    return total / math.log(2)


@functools.lru_cache(maxsize=None)
def held_out(work):
    """The tokens of val.txt and its bytes."""
    ids, tokenizer = data.load(work, "val"), Tokenizer(work / "tokenizer")
    return ids, sum(len(tokenizer.bytes[i]) for i in ids.tolist())


def quick(model, work):
    """Bits per byte of val.txt in bf16, for the log."""
    ids, size = held_out(work)
    with torch.autocast(next(model.parameters()).device.type, torch.bfloat16):
        return {"val_bits_per_byte": bits(model, ids, model.c.context) / size}


@torch.no_grad()
def compare(one, other, ids, size):
    """Share of equal best tokens, and the mean KL divergence (nats) of other from one."""
    device, same, kl, count = next(one.parameters()).device, 0, 0.0, 0
    for inputs, _, counts in windows(ids, size):
        counts = counts.to(device)
        a, b = (F.log_softmax(m(inputs.to(device)).float(), -1)[counts] for m in (one, other))
        same += (a.argmax(-1) == b.argmax(-1)).sum().item()
        kl += (a.exp() * (a - b)).sum(-1).double().sum().item()
        count += len(a)
    return {"same_best_token": same / count, "kl_divergence": kl / count}


@torch.no_grad()
def generate(model, prompts, steps, temperature, seed=1):
    """Continues all prompts together; without a KV cache, behind each prompt's end the buffer is not looked at."""
    device = next(model.parameters()).device
    size = min(model.c.context, max(map(len, prompts)) + steps)
    buffer = torch.zeros(len(prompts), size, dtype=torch.long, device=device)
    for row, ids in enumerate(prompts):
        buffer[row, : len(ids)] = torch.tensor(ids)
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    rows, done = torch.arange(len(prompts), device=device), torch.zeros(len(prompts), dtype=torch.bool, device=device)
    random = torch.Generator(device=device).manual_seed(seed)
    while not done.all() and lengths.max() < size:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(buffer[:, : int(lengths.max())])[rows, lengths - 1].float()
        if temperature:
            best = torch.multinomial(nucleus(logits / temperature), 1, generator=random)[:, 0]
        else:
            best = logits.argmax(-1)
        buffer[rows[~done], lengths[~done]] = best[~done]
        lengths += ~done
        done |= (best == END) | (best == TURN_END)
    return [buffer[i, len(p) : lengths[i]].tolist() for i, p in enumerate(prompts)]


def nucleus(logits, share=0.9):
    chances, order = F.softmax(logits, -1).sort(descending=True)
    chances[chances.cumsum(-1) - chances > share] = 0
    return torch.zeros_like(chances).scatter(-1, order, chances)


def samples(model, tokenizer):
    prompts = [f"{START}user\n{c[0]}{STOP}\n{START}assistant\n" for c in CHATS] + TEXTS
    ids = [[END] + tokenizer.encode(p) for p in prompts]
    out = []
    for temperature in (0.0, 0.7):
        for prompt, answer in zip(prompts, generate(model, ids, 400, temperature)):
            out.append({"temperature": temperature, "prompt": prompt, "text": tokenizer.decode(answer)})
    return out


def measure(work, device):
    ids, size = held_out(work)
    main, draft = load(work / "main", device), load(work / "draft", device)
    out = {"val_tokens": len(ids), "val_bytes": size}
    for name, model in (("main", main), ("draft", draft)):
        out[name] = {f"bits_per_byte_{w}": bits(model, ids, w) / size for w in (WINDOW, model.c.context)}
        small = load(work / name, device, q8_0=True)
        out[name]["q8_0"] = {f"bits_per_byte_{WINDOW}": bits(small, ids, WINDOW) / size} | compare(model, small, ids, WINDOW)
    out["draft_against_main"] = compare(main, draft, ids, WINDOW)
    return out, main


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    out, model = measure(args.work, args.device)
    print(json.dumps(out, indent=1), flush=True)
    out["samples"] = samples(model, Tokenizer(args.work / "tokenizer"))
    args.out.write_text(json.dumps(out, indent=1) + "\n")
    for sample in out["samples"]:
        print(f"[{sample['temperature']}] {sample['prompt']}{sample['text']}\n")


if __name__ == "__main__":
    main()
