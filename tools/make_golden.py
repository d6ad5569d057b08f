#!/usr/bin/env python3
"""Makes the fixtures of the golden tests: tiny random models and HF transformers' outputs for them.

Usage: make_golden.py OUT [NAME...]

Needs torch and transformers (made with 5.17). OUT/<name>/ gets config.json, the weights in bf16
(safetensors) and golden.json:
  ids        48 input tokens
  positions  where logits are given
  logits     per position, computed in fp32
  greedy     16 tokens that follow ids when the best one is taken
  margins    best logit minus second best at each of those
  context    only where the reference holds for that context alone
  seed, transformers   how it was made

A draw of weights is thrown away when it would make a weak test: logits that hardly differ, that do
not depend on the order of the tokens, that rounding activations to bf16 (as fast kernels do) moves
far, or a continuation that is repetitive or that rounding could change.
"""

import json
import os
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor

import torch
import transformers
import transformers.pytorch_utils

TOKENS, NEW_TOKENS = 48, 16
POSITIONS = [0, 1, 13, 30, 47]
DRAWS = 1000
MAX_ROUNDING = 0.06  # of a logit, by bf16 activations; the tests allow 0.1

COMMON = dict(vocab_size=96, bos_token_id=1, eos_token_id=2, pad_token_id=0)
DECODER = dict(COMMON, hidden_size=32, intermediate_size=44, num_hidden_layers=2,
               num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
MULTI_HEAD = {k: v for k, v in DECODER.items() if k != "num_key_value_heads"}
LONGROPE = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
                long_factor=[1.0, 1.5, 3.0, 6.0])


def longrope(original):
    return dict(DECODER, original_max_position_embeddings=original,
                rope_parameters=dict(LONGROPE, original_max_position_embeddings=original))


# name: (config class, its arguments, extras)
MODELS = {
    # Odd numbers where an architecture allows them: widths that are no multiple of any vector,
    # heads that are wider or narrower than hidden_size / heads, windows shorter than the prompt.
    "llama": ("LlamaConfig", dict(DECODER, hidden_size=48, num_attention_heads=6,
                                  intermediate_size=40), {}),
    "llama3-tied": ("LlamaConfig", dict(
        DECODER, num_key_value_heads=1, head_dim=16, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0,
                             low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=64)), {}),
    "llama-yarn": ("LlamaConfig", dict(
        DECODER, head_dim=16,
        rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=2.0,
                             beta_slow=0.25, attention_factor=1.3,
                             original_max_position_embeddings=32)), {}),
    "llama-linear": ("LlamaConfig", dict(
        DECODER, attention_bias=True, mlp_bias=True, intermediate_size=36,
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)), {}),
    "mistral": ("MistralConfig", dict(DECODER, num_hidden_layers=3, head_dim=12,
                                      sliding_window=11), {}),
    "qwen2": ("Qwen2Config", dict(
        DECODER, vocab_size=101, intermediate_size=45, tie_word_embeddings=True,
        use_sliding_window=True, sliding_window=9, max_window_layers=1), dict(shards=2)),
    "qwen3": ("Qwen3Config", dict(
        DECODER, head_dim=16,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
                             original_max_position_embeddings=32)), {}),
    "gemma2": ("Gemma2Config", dict(
        DECODER, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
        query_pre_attn_scalar=20, sliding_window=7, attn_logit_softcapping=3.0,
        final_logit_softcapping=6.0), dict(embed=0.3, branch=3)),
    "gemma3": ("Gemma3TextConfig", dict(
        DECODER, num_hidden_layers=3, num_key_value_heads=1, head_dim=12, intermediate_size=36,
        query_pre_attn_scalar=9, sliding_window=9,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=100000.0, factor=4.0),
            sliding_attention=dict(rope_type="default", rope_theta=1000.0))),
        dict(embed=0.3, branch=3)),
    "phi3": ("Phi3Config", dict(
        DECODER, sliding_window=13, original_max_position_embeddings=128,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                             partial_rotary_factor=0.75)), {}),
    "phi3-longrope-long": ("Phi3Config", longrope(32), {}),
    "phi3-longrope-short": ("Phi3Config", longrope(64), dict(context=64)),
    "gpt2": ("GPT2Config", dict(vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_inner=72,
                                n_positions=80, bos_token_id=1, eos_token_id=2), {}),
    "opt": ("OPTConfig", dict(COMMON, hidden_size=32, ffn_dim=52, num_hidden_layers=2,
                              num_attention_heads=4, max_position_embeddings=80,
                              word_embed_proj_dim=32), {}),
    "gpt-neox": ("GPTNeoXConfig", dict(MULTI_HEAD, rotary_pct=0.5), {}),
    "gpt-neox-sequential": ("GPTNeoXConfig", dict(
        MULTI_HEAD, num_attention_heads=2, rotary_pct=0.25, use_parallel_residual=False), {}),
    "xglm": ("XGLMConfig", dict(COMMON, d_model=32, ffn_dim=52, num_layers=2, attention_heads=4,
                                max_position_embeddings=96), dict(embed=0.3, branch=3)),
    "olmo2": ("Olmo2Config", dict(DECODER), {}),
}


def is_table(name):
    return any(part in name for part in ("embed", "wte", "wpe")) and "embed_out" not in name


def draw_weights(model, initial, generator, embed, branch):
    """Larger than a fresh model's, so that attention is sharp and every layer shows.

    `branch` scales what layers add to the residual, for models that multiply their embeddings and
    would otherwise repeat the last token.
    """
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() == 1 and name.endswith("bias"):
            value = 0.2 * noise
        elif p.dim() == 1:
            value = initial[name] + 0.3 * noise
            if "post_" in name:
                value += branch - 1
        elif is_table(name):
            value = embed * noise
        else:
            transposed = ".c_" in name  # GPT-2 stores (in, out)
            gain = 2.2 if "lm_head" in name or "embed_out" in name else 1.25
            if "out_proj" in name or "fc2" in name:
                gain *= branch
            value = gain / p.shape[0 if transposed else 1] ** 0.5 * noise
        p.data.copy_(value.bfloat16().float())


def logits_of(model, ids):
    with torch.no_grad():
        return model(ids, use_cache=False).logits[0].float()


def rounded_logits_of(model, ids):
    """With the inputs of every matrix product rounded to bf16."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    hooks = [m.register_forward_pre_hook(lambda _, args: (args[0].bfloat16().float(), *args[1:]))
             for m in model.modules() if isinstance(m, kinds)]
    logits = logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    return logits


def reference(model, ids, min_margin):
    """The fields of golden.json, or why this draw is no good."""
    logits = logits_of(model, ids)
    if not torch.isfinite(logits).all():
        return "not finite"
    if logits.std() < 1.0:
        return "logits hardly differ"
    shuffled = ids.clone()
    shuffled[0, :-1] = ids[0, :-1].flip(0)
    if (logits_of(model, shuffled)[-1] - logits[-1]).abs().max() < 0.5:
        return "the order of the tokens hardly matters"
    if (rounded_logits_of(model, ids) - logits)[POSITIONS].abs().max() > MAX_ROUNDING:
        return "rounding moves it far"
    current, greedy, margins = ids, [], []
    for _ in range(NEW_TOKENS):
        last = logits_of(model, current)[-1]
        best, second = torch.topk(last, 2).values.tolist()
        if best - second < min_margin:
            return "a close second"
        greedy.append(int(last.argmax()))
        margins.append(round(best - second, 4))
        current = torch.cat([current, torch.tensor([[greedy[-1]]])], 1)
    if len(set(greedy)) < 5:
        return "it repeats itself"
    rows = {str(p): [round(x, 6) for x in logits[p].tolist()] for p in POSITIONS}
    return dict(ids=ids[0].tolist(), positions=POSITIONS, logits=rows, greedy=greedy,
                margins=margins)


def save(model, folder, extras):
    model.bfloat16()
    size = sum(p.numel() * 2 for p in model.parameters())
    limit = int(size * 0.6) if extras.get("shards") else size * 2
    model.save_pretrained(folder, safe_serialization=True, max_shard_size=limit)


def make(out, name):
    torch.set_num_threads(1)
    class_name, arguments, extras = MODELS[name]
    config = getattr(transformers, class_name)(**arguments)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32).eval()
    initial = {n: p.data.clone() for n, p in model.named_parameters()}
    for draw in range(DRAWS):
        seed = zlib.crc32(f"{name}/{draw}".encode())
        generator = torch.Generator().manual_seed(seed)
        draw_weights(model, initial, generator,
                     extras.get("embed", 0.4 if config.tie_word_embeddings else 0.7),
                     extras.get("branch", 1))
        ids = torch.randint(3, config.vocab_size, (1, TOKENS), generator=generator)
        found = reference(model, ids, 0.2 * (1 - draw / DRAWS))
        if isinstance(found, dict):
            break
    else:
        raise RuntimeError(f"{name}: {DRAWS} draws, the last one: {found}")
    folder = os.path.join(out, name)
    save(model, folder, extras)
    if "context" in extras:
        found["context"] = extras["context"]
    found.update(seed=seed, transformers=transformers.__version__)
    with open(os.path.join(folder, "golden.json"), "w") as f:
        json.dump(found, f, separators=(",", ":"))
        f.write("\n")
    flat = [x for row in found["logits"].values() for x in row]
    return (f"draw {draw}, {sum(p.numel() for p in model.parameters())} weights, logits "
            f"{min(flat):.1f} to {max(flat):.1f}, least margin {min(found['margins']):.3f}, "
            f"{len(set(found['greedy']))} different tokens")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    names = sys.argv[2:] or list(MODELS)
    failed = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {name: pool.submit(make, sys.argv[1], name) for name in names}
        for name, job in jobs.items():
            try:
                print(f"{name:22} {job.result()}")
            except Exception as error:  # the others are still wanted
                failed += 1
                print(f"{name:22} FAILED {error!r}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
