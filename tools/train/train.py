#!/usr/bin/env python3
"""Trains the main model, or the draft with the main model as its teacher.

Usage: train.py main WORK --seconds 750
       train.py draft WORK --seconds 220 --teacher WORK/main

WORK is the folder data.py made. Writes WORK/NAME: a Hugging Face folder (bf16), log.jsonl and checkpoint.pt, from
which --resume continues. With --seconds the number of steps is set from the speed of the first steps, and logged;
--steps with that number repeats the run.
"""

import argparse
import json
import pathlib
import time

import torch
import torch.nn.functional as F

import evaluate
import export
from batches import NAMES, SHARES, Batches
from model import CONFIGS, Llama, hf_name
from optimizer import make_optimizers

WARM, TIMED = 12, 30  # steps before the speed is measured, and steps it is measured over
PEAK = 790e12  # bf16 operations a second that a matrix product reaches on an H200


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(CONFIGS))
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="default: WORK/NAME")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--seconds", type=float)
    length.add_argument("--steps", type=int)
    parser.add_argument("--teacher", type=pathlib.Path, help="folder of the main model; the draft needs it")
    parser.add_argument("--batch", type=int, default=128, help="windows a step")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a window")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--decay", type=float, default=0.5, help="share of the steps after which the rate falls")
    parser.add_argument("--optimizer", choices=["muon", "adamw"], default="muon")
    parser.add_argument("--kl", type=float, default=0.9, help="share of the distillation in the draft's loss")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    if (args.name == "draft") != (args.teacher is not None):
        parser.error("--teacher is for the draft, which needs it")
    args.out = args.out or args.work / args.name
    return args


def text_loss(model, inputs, targets):
    """Cross entropy of every window."""
    with torch.autocast(inputs.device.type, torch.bfloat16):
        logits = model(inputs)
    losses = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape).mean(1)


def distill_loss(model, teacher, share, inputs, targets):
    """share of the KL divergence from the teacher and the rest cross entropy, of every window."""
    with torch.autocast(inputs.device.type, torch.bfloat16):
        logits = model(inputs)
        with torch.no_grad():
            wanted = teacher(inputs)
    own = F.log_softmax(logits.float(), -1)
    goal = F.log_softmax(wanted.float(), -1)
    kl = (goal.exp() * (goal - own)).sum(-1)
    entropy = -own.gather(-1, targets[..., None])[..., 0]
    return (share * kl + (1 - share) * entropy).mean(1)


class Run:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.args = args
        self.model = Llama(CONFIGS[args.name]).to(args.device)
        self.batches = Batches(args.work, args.length, args.device, args.seed)
        self.optimizers = make_optimizers(self.model, args)
        self.step, self.total, self.spent = 0, args.steps, 0.0
        self.used = dict.fromkeys(NAMES, 0)
        compiled = torch.compile if args.compile else lambda f: f
        if args.teacher:
            teacher = evaluate.load(args.teacher, args.device)
            loss = compiled(distill_loss)
            self.loss = lambda x, y: loss(self.model, teacher, args.kl, x, y)
        else:
            loss = compiled(text_loss)
            self.loss = lambda x, y: loss(self.model, x, y)
        args.out.mkdir(parents=True, exist_ok=True)
        if args.resume:
            self.restore()
        self.file = open(args.out / "log.jsonl", "a" if args.resume else "w")

    def log(self, **values):
        line = json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()})
        print(line, flush=True)
        self.file.write(line + "\n")
        self.file.flush()

    def save(self):
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                 "step": self.step, "total": self.total, "spent": self.spent, "used": self.used}
        torch.save(state, self.args.out / "checkpoint.tmp")
        (self.args.out / "checkpoint.tmp").rename(self.args.out / "checkpoint.pt")

    def restore(self):
        state = torch.load(self.args.out / "checkpoint.pt", map_location=self.args.device)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        self.step, self.total, self.spent, self.used = (state[k] for k in ("step", "total", "spent", "used"))

    def rate(self):
        if self.step < self.args.warmup:
            return self.args.lr * (self.step + 1) / self.args.warmup
        if not self.total:
            return self.args.lr
        left = (self.total - self.step) / (self.total * (1 - self.args.decay))
        return self.args.lr * min(1.0, left)

    def shares(self):
        steady = not self.total or self.step < self.total * self.args.decay
        shares = [s * self.args.batch // 128 for s in SHARES["steady" if steady else "decay"]]
        return [self.args.batch - sum(shares[1:])] + shares[1:]

    def train_step(self):
        shares = self.shares()
        inputs, targets = self.batches.get(self.used, shares)
        losses = self.loss(inputs, targets)
        losses.mean().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        for name, n in zip(NAMES, shares):
            self.used[name] += n
        self.step += 1
        return [part.mean() for part in losses.detach().split(shares)]

    def plan(self, started):
        """The number of steps that fit, from the speed so far."""
        if self.step == WARM:
            self.wait()
            self.mark = time.time()
        elif self.step == WARM + TIMED:
            self.wait()
            pace = (time.time() - self.mark) / TIMED
            self.total = self.step + max(1, int((self.args.seconds - (time.time() - started)) / pace))
            self.log(steps=self.total, seconds_a_step=pace)

    def wait(self):
        if self.args.device == "cuda":
            torch.cuda.synchronize()

    def train(self):
        args, before, started = self.args, self.spent, time.time()
        tokens = args.batch * args.length
        c = self.model.c
        work = 6 * self.model.parameter_count() + 6 * c.layers * c.heads * c.head_dim * args.length
        self.log(name=args.name, parameters=self.model.parameter_count(), config=vars(c),
                 args={k: str(v) for k, v in vars(args).items()}, tokens=self.batches.sizes)
        mark, at = started, self.step
        while not self.total or self.step < self.total:
            losses = self.train_step()
            if not self.total:
                self.plan(started)
            if self.step % 50 == 0:
                values = [x.item() for x in losses]
                now = time.time()
                speed = tokens * (self.step - at) / (now - mark)
                self.log(step=self.step, seconds=before + now - started, lr=self.rate(), tokens_a_second=int(speed),
                         share_of_peak=speed * work / PEAK, **dict(zip(NAMES, values)))
                mark, at = now, self.step
            if self.total and self.step % max(1, self.total // 8) == 0:
                self.spent = before + time.time() - started
                self.log(step=self.step, **evaluate.quick(self.model, args.work))
                self.save()
                mark, at = time.time(), self.step
        self.spent = before + time.time() - started
        self.save()
        self.log(step=self.step, seconds=self.spent, windows=self.used)

    def export(self):
        bits = {hf_name(n): p.detach().bfloat16().view(torch.int16).cpu().numpy().view("uint16")
                for n, p in self.model.named_parameters()}
        export.write_hf(self.args.out, self.model.c, bits, self.args.work / "tokenizer")


def main():
    run = Run(arguments())
    run.train()
    run.export()


if __name__ == "__main__":
    main()
