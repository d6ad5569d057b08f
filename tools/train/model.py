"""The Llama architecture in plain PyTorch: RMS norm, rotary positions, grouped-query attention, SwiGLU, tied output."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocab: int = 6144
    context: int = 2048
    eps: float = 1e-5
    theta: float = 10000.0


MAIN = Config(dim=384, layers=8, heads=6, kv_heads=2, head_dim=64, hidden=896)
DRAFT = Config(dim=160, layers=4, heads=5, kv_heads=1, head_dim=32, hidden=384)
CONFIGS = {"main": MAIN, "draft": DRAFT}


class Norm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).type_as(x)


def rotary_table(c):
    inverse = c.theta ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim)
    angles = torch.outer(torch.arange(c.context).float(), inverse)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x is (batch, heads, positions, width); element i turns with element i + width / 2."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).type_as(x)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        self.attn_norm, self.ffn_norm = Norm(c.dim, c.eps), Norm(c.dim, c.eps)
        self.q, self.k, self.v = (nn.Linear(c.dim, n, bias=False) for n in (q, kv, kv))
        self.o = nn.Linear(q, c.dim, bias=False)
        self.gate, self.up = (nn.Linear(c.dim, c.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(c.hidden, c.dim, bias=False)

    def attention(self, x, cos, sin):
        c, (B, T, _) = self.c, x.shape
        q = rotate(self.q(x).view(B, T, c.heads, c.head_dim).transpose(1, 2), cos, sin)
        k = rotate(self.k(x).view(B, T, c.kv_heads, c.head_dim).transpose(1, 2), cos, sin)
        v = self.v(x).view(B, T, c.kv_heads, c.head_dim).transpose(1, 2)
        k, v = (t.repeat_interleave(c.heads // c.kv_heads, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, c.heads * c.head_dim))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attn_norm(x), cos, sin)
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c.vocab, c.dim)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = Norm(c.dim, c.eps)
        cos, sin = rotary_table(c)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("o.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * c.layers) if last else 0.02)

    def forward(self, ids):
        x = self.embed(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed.weight)

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters())


HF_NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "q": "self_attn.q_proj",
    "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj", "gate": "mlp.gate_proj",
    "up": "mlp.up_proj", "down": "mlp.down_proj",
}


def hf_name(name):
    parts = name.split(".")
    if parts[0] == "layers":
        return f"model.layers.{parts[1]}.{HF_NAMES[parts[2]]}.weight"
    return {"embed": "model.embed_tokens.weight", "norm": "model.norm.weight"}[parts[0]]
