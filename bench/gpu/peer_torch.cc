// PyTorch's caching allocator, for `tarn bench pool` (bench/peer_abi.h): the
// two calls that every tensor of PyTorch's comes from, without Python and
// without a tensor. The options are those of PYTORCH_ALLOC_CONF, as in
// peer_torch.so:expandable_segments:True.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "bench/peer_abi.h"

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

c10::DeviceIndex used_device;

// PyTorch's words, which go on for many lines, up to the end of the first.
void explain(const std::exception &error, char *why) {
  std::snprintf(why, TARN_PEER_WHY_SIZE, "%s", error.what());
  for (char *c = why; *c != '\0'; c++) {
    if (*c == '\n') *c = '\0';
    if (*c == '\0') break;
  }
}

c10::DeviceIndex index_of(const char *device) {
  const char *colon = std::strrchr(device, ':');
  long index = colon != nullptr ? std::strtol(colon + 1, nullptr, 10) : 0;
  return static_cast<c10::DeviceIndex>(index);
}

}  // namespace

bool tarn_peer_open(const char *device, const char *options, char *why) {
  try {
    if (*options != '\0') {
      setenv("PYTORCH_ALLOC_CONF", options, 1);
      setenv("PYTORCH_CUDA_ALLOC_CONF", options, 1);
    }
    used_device = index_of(device);
    allocator::init(c10::cuda::device_count_ensure_non_zero());
    c10::cuda::set_device(used_device);
    tarn_peer_free(allocator::raw_alloc(512));
    allocator::emptyCache();
    return true;
  } catch (const std::exception &error) {
    explain(error, why);
    return false;
  }
}

void *tarn_peer_alloc(size_t size) {
  try {
    return allocator::raw_alloc(size);
  } catch (const std::exception &) {
    return nullptr;
  }
}

void tarn_peer_free(void *block) {
  allocator::raw_delete(block);
}

size_t tarn_peer_held() {
  constexpr auto all =
      static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator::getDeviceStats(used_device);
  return static_cast<size_t>(stats.reserved_bytes[all].current);
}
