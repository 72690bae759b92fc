"""A program to record: training steps of a small net on the CPU.

Two convolutions and two linear layers, Adam, batches of noise: the blocks are
those of any training, weights and their gradients, activations, and the two
moments that the optimizer keeps of each weight from its first step on.
"""
import sys

import torch
from torch import nn


def make_net():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 8 * 8, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def train(steps, batch):
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(steps):
        images = torch.randn(batch, 3, 32, 32)
        labels = torch.randint(10, (batch,))
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        print(step, float(loss))


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 4, 32)
