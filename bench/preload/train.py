"""Trains a net with PyTorch on the processor, on numbers that mean nothing.

    train.py NET fixed|varied STEPS THREADS

After each step it writes "step SECONDS FAULTS": the processor's time that the
step took, and the page faults of the process so far. All numbers come from a
seed, so that each run does the same work. `tarn bench preload` runs it under
several allocators.
"""
import random
import resource
import sys
import time

import torch
from torch import nn

BATCH = {"gpt": 4, "resnet18": 16, "resnet50": 8, "vgg16": 8}
SIZE = {"gpt": 128, "resnet18": 64, "resnet50": 64, "vgg16": 64}
TOKENS, WIDTH, LAYERS, HEADS, CLASSES = 32000, 256, 4, 4, 10


class Gpt(nn.Module):
    """Predicts each token of a text from those before it."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0,
                                           batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.read = nn.Linear(WIDTH, TOKENS)

    def forward(self, text):
        length = text.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        return self.read(self.layers(self.embed(text), mask))


def make(name):
    if name == "gpt":
        return Gpt()
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES)


def loss_of(net, name, size):
    """The loss of one batch of texts, or of square pictures, of that size."""
    if name == "gpt":
        text = torch.randint(0, TOKENS, (BATCH[name], size + 1))
        guess = net(text[:, :-1])
        return nn.functional.cross_entropy(guess.flatten(0, 1),
                                           text[:, 1:].flatten())
    pictures = torch.rand(BATCH[name], 3, size, size)
    labels = torch.randint(0, CLASSES, (BATCH[name],))
    return nn.functional.cross_entropy(net(pictures), labels)


def size_of(name, varied, chance):
    size = SIZE[name]
    if not varied:
        return size
    step = 1 if name == "gpt" else 8
    return chance.randrange(size // 2, size * 3 // 2, step)


def main():
    name, lengths, steps, threads = sys.argv[1:5]
    torch.manual_seed(1)
    torch.set_num_threads(int(threads))
    chance = random.Random(1)
    net = make(name)
    better = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(int(steps)):
        size = size_of(name, lengths == "varied", chance)
        begin = time.process_time()
        better.zero_grad()
        loss = loss_of(net, name, size)
        loss.backward()
        better.step()
        assert loss.item() == loss.item()  # no NaN
        taken = time.process_time() - begin
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        print("step %.6f %d" % (taken, faults), flush=True)


main()
