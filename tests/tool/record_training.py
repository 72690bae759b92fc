"""A training with PyTorch on the CPU, for the tests of `tarn record`: a net of
two blocks, some steps of Adam."""
import torch
from torch import nn

WIDTH, BATCH, STEPS = 256, 512, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        hidden = torch.relu(self.up(self.norm(x)))
        return x + self.down(hidden)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return Double.apply(self.blocks(x)).pow(2).mean()


def train():
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = net(torch.randn(BATCH, WIDTH))
        loss.backward()
        optimizer.step()
    assert loss.item() > 0


train()
