#include "caught.h"

#include <cstdio>
#include <stdexcept>

#include "tarn_torch.h"

namespace {

void note(char *text, const char *what) {
  std::snprintf(text, CAUGHT_TEXT, "%s", what);
}

tarn_torch_pool_id pool_id(unsigned long long id) {
  return {id, 0};
}

}  // namespace

void *alloc_caught(size_t size, int device, void *stream,
                   char text[CAUGHT_TEXT]) {
  note(text, "");
  try {
    return tarn_torch_alloc(size, device, stream);
  } catch (const std::runtime_error &error) {
    note(text, error.what());
  }
  return nullptr;
}

void begin_caught(int device, unsigned long long id, void *stream,
                  char text[CAUGHT_TEXT]) {
  note(text, "");
  try {
    tarn_torch_begin_pool(device, pool_id(id), [stream](CUstream_st *asked) {
      return static_cast<void *>(asked) == stream;
    });
  } catch (const std::runtime_error &error) {
    note(text, error.what());
  }
}

void begin_with_thrower(int device, unsigned long long id) {
  tarn_torch_begin_pool(device, pool_id(id), [](CUstream_st *) -> bool {
    throw std::runtime_error("the filter throws");
  });
}

void end_graph(int device, unsigned long long id) {
  tarn_torch_end_pool(device, pool_id(id));
}

void release_graph(int device, unsigned long long id) {
  tarn_torch_release_pool(device, pool_id(id));
}
