"""Muon for the matrices of the layers, AdamW for the embedding and the norms, with one learning rate for both."""

import torch


def orthogonalize(stack):
    """The nearest orthogonal matrices, roughly, by five Newton-Schulz steps; stack is (number, rows, columns)."""
    x = stack.bfloat16()
    turned = x.shape[1] > x.shape[2]
    if turned:
        x = x.transpose(1, 2)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.transpose(1, 2) if turned else x


class Muon(torch.optim.Optimizer):
    """Steps have a root mean square of 0.2 of the learning rate, which suits AdamW's rates."""

    def __init__(self, params, lr, momentum=0.95, decay=0.1, compiled=True):
        groups = {}
        for p in params:
            groups.setdefault(tuple(p.shape), []).append(p)
        super().__init__([{"params": g} for g in groups.values()], dict(lr=lr, momentum=momentum, decay=decay))
        self.orthogonalize = torch.compile(orthogonalize, dynamic=False) if compiled else orthogonalize

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params, momentum = group["params"], group["momentum"]
            grads = torch.stack([p.grad for p in params])
            state = self.state[params[0]]
            if "velocity" not in state:
                state["velocity"] = torch.zeros_like(grads)
            state["velocity"].lerp_(grads, 1 - momentum)
            step = self.orthogonalize(grads.lerp(state["velocity"], momentum)).type_as(grads)
            scale = 0.2 * max(grads.shape[1:]) ** 0.5
            for p, s in zip(params, step):
                p.mul_(1 - group["lr"] * group["decay"]).add_(s, alpha=-group["lr"] * scale)


def make_optimizers(model, args):
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and n.startswith("layers")]
    embedding = [model.embed.weight]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    adam = [{"params": embedding, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    if args.optimizer == "adamw":
        adam.append({"params": matrices, "weight_decay": 0.1})
    fused = {"fused": True} if args.device == "cuda" else {}
    optimizers = [torch.optim.AdamW(adam, lr=args.lr, betas=(0.9, 0.95), eps=1e-10, **fused)]
    if args.optimizer == "muon":
        optimizers.append(Muon(matrices, lr=args.lr, compiled=args.compile))
    return optimizers
