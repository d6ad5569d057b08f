"""Which tokens go into which step: windows of every text in a fixed random order, mixed in fixed shares."""

import numpy
import torch

import data

END = 0
NAMES = ("prose", "stories", "dialogues")
# Windows out of 128, before the decay of the learning rate and in it.
SHARES = {"steady": (80, 18, 30), "decay": (66, 16, 46)}


def document_windows(ids, length):
    """Starts of windows that begin with a document and together hold everything."""
    ends = numpy.flatnonzero(ids == END)
    starts = numpy.concatenate(([0], ends[:-1] + 1))
    out, covered = [], 0
    for start, end in zip(starts, ends):
        if end >= covered and start + length < len(ids):
            out.append(start)
            covered = start + length
    return numpy.array(out)


class Batches:
    """Step n's batch depends on the seed and n alone, so training can go on where it stopped."""

    def __init__(self, work, length, device, seed):
        self.length, self.device, self.seed = length, device, seed
        ids = {name: data.load(work, name) for name in NAMES}
        self.bases = numpy.cumsum([0] + [len(ids[n]) for n in NAMES])
        self.tokens = torch.from_numpy(numpy.concatenate([ids[n] for n in NAMES]).astype(numpy.int16)).to(device)
        self.fixed = {n: document_windows(ids[n], length) for n in NAMES[1:]}
        self.sizes = {n: len(ids[n]) for n in NAMES}
        self.offsets = torch.arange(length, device=device)
        self.orders = {}

    def order(self, text, epoch):
        """The starts of one pass over a text, shuffled; prose is cut at other places in each pass."""
        key = (text, epoch)
        if key not in self.orders:
            rng = numpy.random.default_rng([self.seed, NAMES.index(text), epoch])
            if text == "prose":
                starts = numpy.arange(rng.integers(self.length), self.sizes[text] - self.length, self.length)
            else:
                starts = self.fixed[text]
            self.orders[key] = rng.permutation(starts) + self.bases[NAMES.index(text)]
        return self.orders[key]

    def passes(self, text, used):
        """Where window number `used` of a text is: pass and place in it. A pass of prose has its own count."""
        epoch = 0
        while used >= len(self.order(text, epoch)):
            used -= len(self.order(text, epoch))
            epoch += 1
        return epoch, used

    def starts(self, text, used, count):
        out = []
        epoch, at = self.passes(text, used)
        while count > 0:
            part = self.order(text, epoch)[at : at + count]
            out.append(part)
            count -= len(part)
            epoch, at = epoch + 1, 0
        return numpy.concatenate(out)

    def get(self, used, shares):
        """Inputs and targets (int64) after `used` windows of each text.

        Every window starts with END, but for one in twenty, so that a dialogue works without it too.
        """
        starts = numpy.concatenate([self.starts(n, used[n], s) for n, s in zip(NAMES, shares)])
        at = torch.from_numpy(starts).to(self.device, non_blocking=True)[:, None] + self.offsets
        targets = self.tokens[at].long()
        inputs = torch.cat((torch.full_like(targets[:, :1], END), targets[:, :-1]), dim=1)
        bare = len(starts) // 20
        if bare:
            inputs[-bare:], targets[-bare:] = targets[-bare:].clone(), self.tokens[at[-bare:] + 1].long()
        return inputs, targets
