"""Where the headers and libraries of PyTorch are, for scripts/gpu-check: as one
object of JSON."""

import json

import torch
import torch.utils.cpp_extension as extension

print(json.dumps({
    "includes": extension.include_paths(),
    "libraries": extension.library_paths(),
    "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI),
}))
