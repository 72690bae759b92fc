"""Writes the buffers of one inference of MobileNetV2 as a table for tarn plan.

The net is that of the paper (Sandler et al., 2018), with 8-bit activations of a
96 x 96 image; each operation is a step. A sum may begin in the place of one of
what it adds, and a depthwise convolution of step width 1 in that of its input;
pointwise convolutions have a scratch buffer. All offsets are multiples of 16.
"""
import sys

BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
          (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class Net:
  def __init__(self):
    self.step = 0
    self.buffers = []  # id, lower, upper, size, in_place_of

  def make(self, name, size, inputs, in_place=(), scratch=0):
    """An operation that reads the buffers |inputs| and makes one."""
    for index in inputs:
      self.buffers[index][2] = self.step + 1
    if scratch:
      self.buffers.append([name + ".scratch", self.step, self.step + 1,
                           scratch, ()])
    self.buffers.append([name, self.step, self.step + 1, size, in_place])
    self.step += 1
    return len(self.buffers) - 1

  def takers(self, buffer):
    """Those of in_place_of whose last step is its first one."""
    return [self.buffers[i][0] for i in buffer[4]
            if self.buffers[i][2] - 1 == buffer[1]]


def block(net, name, x, side, channels, expand, out, stride):
  wide = channels * expand
  now = x
  if expand > 1:
    now = net.make(name + ".expand", side * side * wide, [now],
                   scratch=4 * wide)
  narrow = side // stride
  now = net.make(name + ".depthwise", narrow * narrow * wide, [now],
                 in_place=[now] if stride == 1 else [])
  now = net.make(name + ".project", narrow * narrow * out, [now],
                 scratch=4 * out)
  if stride == 1 and channels == out:
    now = net.make(name + ".add", narrow * narrow * out, [x, now],
                   in_place=[x, now])
  return now, narrow


def build():
  net = Net()
  now = net.make("image", 96 * 96 * 3, [])
  side, channels = 48, 32
  now = net.make("stem", side * side * channels, [now], scratch=48 * 27)
  for stage, (expand, out, repeats, stride) in enumerate(BLOCKS):
    for i in range(repeats):
      now, side = block(net, "%d.%d" % (stage + 1, i), now, side, channels,
                        expand, out, stride if i == 0 else 1)
      channels = out
  now = net.make("head", side * side * 1280, [now])
  now = net.make("pool", 1280, [now])
  net.make("classes", 1000, [now])
  return net


def main():
  net = build()
  out = sys.stdout
  out.write("id,lower,upper,size,alignment,in_place_of\n")
  for buffer in net.buffers:
    out.write("%s,%d,%d,%d,16,%s\n" % (*buffer[:4],
                                       " ".join(net.takers(buffer))))


if __name__ == "__main__":
  main()
