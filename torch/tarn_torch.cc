// PyTorch's pluggable allocator over Tarn's pools: tarn_torch.h.
//
//   PyTorch ─ alloc, free ─► device N ─┬─► the device's pool
//                              │       └─► a pool for each of PyTorch's pools
//                              │           that graphs are captured into
//                              └─► its streams, adopted once each
//
// Invariants:
//   * A device and an adopted stream, once there, stay until tarn_torch_close,
//     so a request finds both without a lock.
//   * A free does not know which pool a block is of. As long as a device has
//     no pool of graphs it is the device's; then Tarn searches (tarn_free).
//   * Exceptions leave tarn_torch_alloc and tarn_torch_begin_pool only. Memory
//     of this file comes from new (std::nothrow).
#include "tarn_torch.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "tarn/alloc.h"
#include "tarn/capture.h"
#include "tarn/sleep.h"
#include "tarn/snapshot.h"

namespace {

constexpr int DEVICES = 64;
constexpr size_t SLOTS = 512;         // of a device's streams, a power of two
constexpr size_t MOST_STREAMS = 256;  // adopted: half of the slots stay empty
constexpr size_t MOST_TAGS = 32;

// A stream of PyTorch's. |stream| is set before |native|, and both once.
struct stream_slot {
  std::atomic<void *> native;
  tarn_stream *stream;
};

// A pool of PyTorch's that graphs are captured into.
struct graph_pool {
  tarn_torch_pool_id id;
  tarn_pool *pool;
  tarn_torch_filter filter;  // of the capture that is under way
  bool is_capturing;
  bool is_released;  // ends when its last block has been freed
  graph_pool *next;
};

struct torch_device {
  tarn_device *device;
  tarn_pool *pool;
  bool is_synchronous;                  // has no streams
  std::atomic<tarn_stream *> standard;  // the default stream, adopted
  stream_slot slots[SLOTS];
  std::atomic<unsigned> captures;  // under way
  std::atomic<bool> has_graphs;    // |graphs| is, or was, not empty
  std::mutex lock;                 // guards the rest, and who fills a slot
  size_t stream_count;
  graph_pool *graphs;
};

// The registry of devices: each is entered once, under the lock.
std::atomic<torch_device *> devices[DEVICES];
std::mutex devices_lock;

std::atomic<bool> has_complained;

thread_local tarn_tag tags[MOST_TAGS];
thread_local size_t tag_count;
thread_local char last_error[512];

// --- failures --------------------------------------------------------------

tarn_status fail(tarn_status status, const char *text) {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}

// Keeps the text of a call of Tarn's that has just returned |status|.
tarn_status keep(tarn_status status) {
  return status == TARN_OK ? status : fail(status, tarn_last_error());
}

// For what PyTorch cannot be told. Its output goes where other libraries of
// such a program write, once: a wrong free is rarely alone.
void complain(const char *what, const void *pointer) {
  if (has_complained.exchange(true)) return;
  std::fprintf(stderr, "libtarn_torch: %s %p: %s (said once)\n", what, pointer,
               last_error);
}

// --- devices ---------------------------------------------------------------

void write_name(int device, char *out, size_t size) {
  const char *type = secure_getenv("TARN_TORCH_DEVICE");
  if (type == nullptr || *type == '\0') type = "cuda";
  std::snprintf(out, size, "%s:%d", type, device);
}

// Enters |handle|, which is open, as device |number|.
tarn_status enter_device(int number, tarn_device *handle,
                         torch_device **out_device) {
  tarn_pool *pool = nullptr;
  tarn_status status = keep(tarn_pool_of(tarn_place_on(handle), &pool));
  if (status != TARN_OK) return status;
  auto *made = new (std::nothrow) torch_device();
  if (made == nullptr)
    return fail(TARN_E_NOMEM, "no host memory for a device of PyTorch's");
  made->device = handle;
  made->pool = pool;
  made->is_synchronous = (tarn_device_functions(handle) & TARN_FN_STREAMS) == 0;
  devices[number].store(made, std::memory_order_release);
  *out_device = made;
  return TARN_OK;
}

tarn_status open_device(int number, torch_device **out_device) {
  char name[128];
  tarn_device *handle = nullptr;
  std::lock_guard<std::mutex> guard(devices_lock);
  *out_device =
      number >= 0 && number < DEVICES ? devices[number].load() : nullptr;
  if (*out_device != nullptr) return TARN_OK;
  write_name(number, name, sizeof name);
  tarn_status status = keep(tarn_device_open(name, &handle));
  if (status != TARN_OK) return status;
  status = number < DEVICES ? enter_device(number, handle, out_device)
                            : fail(TARN_E_UNSUPPORTED,
                                   "libtarn_torch serves 64 devices at most");
  if (status != TARN_OK) (void)tarn_device_close(handle);
  return status;
}

tarn_status find_device(int number, torch_device **out_device) {
  if (number >= 0 && number < DEVICES) {
    *out_device = devices[number].load(std::memory_order_acquire);
    if (*out_device != nullptr) return TARN_OK;
  }
  return open_device(number, out_device);
}

// Calls |visit| for each device that is open, until it returns true.
template <typename visitor>
bool any_device(const visitor &visit) {
  for (auto &entry : devices) {
    torch_device *device = entry.load(std::memory_order_acquire);
    if (device != nullptr && visit(device)) return true;
  }
  return false;
}

// --- streams ---------------------------------------------------------------

// The slot that has |native|, or the empty one where it belongs.
stream_slot *find_slot(torch_device *device, void *native) {
  uint64_t mixed = tarn_addr_of(native) * 0x9e3779b97f4a7c15u;
  for (size_t i = mixed >> 55;; i++) {
    stream_slot *slot = &device->slots[i % SLOTS];
    void *there = slot->native.load(std::memory_order_acquire);
    if (there == native || there == nullptr) return slot;
  }
}

tarn_stream *find_stream(torch_device *device, void *native) {
  if (native == nullptr) return device->standard.load();
  stream_slot *slot = find_slot(device, native);
  // An empty slot may meanwhile have become another stream's.
  bool is_its = slot->native.load(std::memory_order_acquire) == native;
  return is_its ? slot->stream : nullptr;
}

// Keeps |stream| for |native|; false: there is no room. The lock is held.
bool keep_stream(torch_device *device, void *native, tarn_stream *stream) {
  if (native == nullptr) {
    device->standard.store(stream);
    return true;
  }
  if (device->stream_count == MOST_STREAMS) return false;
  stream_slot *slot = find_slot(device, native);
  slot->stream = stream;
  slot->native.store(native, std::memory_order_release);
  device->stream_count++;
  return true;
}

// A stream for the length of a call. One that could not be kept is let go.
class used_stream {
 public:
  used_stream() = default;
  used_stream(const used_stream &) = delete;
  used_stream &operator=(const used_stream &) = delete;
  ~used_stream() {
    if (is_adopted_) (void)tarn_stream_destroy(stream_);
  }

  tarn_status find(torch_device *device, void *native) {
    if (device->is_synchronous) return TARN_OK;
    stream_ = find_stream(device, native);
    return stream_ != nullptr ? TARN_OK : adopt(device, native);
  }

  tarn_stream *get() const {
    return stream_;
  }

 private:
  tarn_status adopt(torch_device *device, void *native) {
    std::lock_guard<std::mutex> guard(device->lock);
    stream_ = find_stream(device, native);
    if (stream_ != nullptr) return TARN_OK;
    tarn_status status =
        keep(tarn_stream_adopt(device->device, native, &stream_));
    if (status != TARN_OK) return status;
    is_adopted_ = !keep_stream(device, native, stream_);
    return TARN_OK;
  }

  tarn_stream *stream_ = nullptr;  // of a synchronous device: the host
  bool is_adopted_ = false;
};

// --- captured graphs -------------------------------------------------------

graph_pool *find_graph(const torch_device *device, tarn_torch_pool_id id) {
  graph_pool *graph = device->graphs;
  while (graph != nullptr && (graph->id != id || graph->is_released))
    graph = graph->next;
  return graph;
}

// The lock is held, as in all of these.
tarn_status make_graph(torch_device *device, tarn_torch_pool_id id,
                       graph_pool **out_graph) {
  tarn_pool_options options = {};
  options.struct_size = sizeof options;
  options.flags = TARN_POOL_DEFER;
  auto *graph = new (std::nothrow) graph_pool();
  *out_graph = graph;
  if (graph == nullptr)
    return fail(TARN_E_NOMEM, "no host memory for a pool of graphs");
  tarn_status status = keep(
      tarn_pool_create(tarn_place_on(device->device), &options, &graph->pool));
  if (status != TARN_OK) {
    delete graph;
    *out_graph = nullptr;
    return status;
  }
  graph->id = id;
  graph->next = device->graphs;
  device->graphs = graph;
  device->has_graphs.store(true);
  return TARN_OK;
}

tarn_status begin_graph(torch_device *device, tarn_torch_pool_id id,
                        tarn_torch_filter *filter) {
  graph_pool *graph = find_graph(device, id);
  tarn_status status =
      graph != nullptr ? TARN_OK : make_graph(device, id, &graph);
  if (status == TARN_OK) status = keep(tarn_pool_begin_capture(graph->pool));
  if (status != TARN_OK) return status;
  graph->filter = std::move(*filter);
  graph->is_capturing = true;
  device->captures++;
  return TARN_OK;
}

tarn_status end_graph(torch_device *device, graph_pool *graph) {
  if (!graph->is_capturing) return TARN_OK;
  graph->is_capturing = false;
  graph->filter = nullptr;
  device->captures--;
  return keep(tarn_pool_end_capture(graph->pool));
}

// Ends the released pools of which no block is live. The host may wait for the
// streams that used them, which must not be captured: not at the end of one.
void sweep_graphs(torch_device *device) {
  for (graph_pool **at = &device->graphs; *at != nullptr;) {
    graph_pool *graph = *at;
    if (!graph->is_released || tarn_pool_destroy(graph->pool) == TARN_E_STATE) {
      at = &graph->next;
      continue;
    }
    *at = graph->next;
    delete graph;
  }
}

// The pool for a request on |native|. The filter is PyTorch's, and may throw.
tarn_pool *choose_pool(torch_device *device, void *native) {
  if (device->captures.load(std::memory_order_acquire) == 0)
    return device->pool;
  std::lock_guard<std::mutex> guard(device->lock);
  for (graph_pool *g = device->graphs; g != nullptr; g = g->next) {
    if (g->is_capturing && g->filter(static_cast<CUstream_st *>(native)))
      return g->pool;
  }
  return device->pool;
}

// --- blocks ----------------------------------------------------------------

tarn_status allocate(size_t size, int number, void *native, void **out_ptr) {
  torch_device *device = nullptr;
  used_stream stream;
  tarn_block block = {};
  *out_ptr = nullptr;
  if (size == 0) return TARN_OK;
  tarn_status status = find_device(number, &device);
  if (status == TARN_OK) status = stream.find(device, native);
  if (status != TARN_OK) return status;
  tarn_alloc_options options = {};
  options.struct_size = sizeof options;
  options.size = size;
  options.stream = stream.get();
  options.tag = tag_count != 0 ? tags[tag_count - 1] : 0;
  status =
      keep(tarn_pool_alloc_with(choose_pool(device, native), &options, &block));
  *out_ptr = block.pointer;
  return status;
}

tarn_status release(void *ptr, int number, void *native) {
  torch_device *device = nullptr;
  used_stream stream;
  tarn_addr address = tarn_addr_of(ptr);
  tarn_status status = find_device(number, &device);
  if (status == TARN_OK) status = stream.find(device, native);
  if (status != TARN_OK) return status;
  return keep(
      device->has_graphs.load(std::memory_order_acquire)
          ? tarn_free(tarn_place_on(device->device), address, stream.get())
          : tarn_pool_free_address(device->pool, address, stream.get()));
}

// The block that has |ptr| in it.
bool find_block(const torch_device *device, const void *ptr,
                tarn_block *out_block) {
  tarn_addr address = tarn_addr_of(ptr);
  return tarn_pool_block_of(device->pool, address, out_block, nullptr) ==
             TARN_OK ||
         (device->has_graphs.load(std::memory_order_acquire) &&
          tarn_block_of(tarn_place_on(device->device), address, out_block,
                        nullptr) == TARN_OK);
}

bool holds(const tarn_pointer_info &info, const tarn_block &block) {
  return info.base <= block.address && block.address - info.base <= info.size &&
         info.size - (block.address - info.base) >= block.size;
}

// The allocation of the driver around |ptr|. In a range, where the driver knows
// pieces of a block, it is the block.
bool find_base(torch_device *device, const void *ptr, void **out_base,
               size_t *out_size) {
  tarn_block block = {};
  tarn_pointer_info info = {};
  if (!find_block(device, ptr, &block)) return false;
  bool is_known = tarn_device_pointer_query(device->device, block.address,
                                            &info) == TARN_OK &&
                  holds(info, block);
  *out_size = is_known ? info.size : block.size;
  block.address = is_known ? info.base : block.address;
  *out_base = block.pointer;
  return true;
}

tarn_status limit(int number, double fraction) {
  torch_device *device = nullptr;
  size_t total = 0;
  size_t available = 0;
  if (!(fraction > 0 && fraction <= 1))
    return fail(TARN_E_INVALID, "the fraction is not above 0 and at most 1");
  tarn_status status = find_device(number, &device);
  if (status == TARN_OK)
    status = keep(tarn_device_memory(device->device, &total, &available));
  if (status != TARN_OK) return status;
  auto bytes = static_cast<size_t>(static_cast<double>(total) * fraction);
  return keep(tarn_pool_limit(device->pool, bytes));
}

// --- statistics, tags ------------------------------------------------------

tarn_status query(tarn_pool *pool, tarn_pool_stats *out_stats) {
  out_stats->struct_size = sizeof *out_stats;
  return keep(tarn_pool_query(pool, out_stats));
}

// Clears |out_stats|, which has |*out_size| bytes of the caller's version.
tarn_status check_stats(tarn_torch_stats *out_stats, size_t *out_size) {
  if (out_stats == nullptr)
    return fail(TARN_E_INVALID, "tarn_torch_query: NULL in place of a struct");
  size_t size = out_stats->struct_size;
  if (size == 0) size = sizeof *out_stats;
  if (size < sizeof *out_stats) {
    return fail(TARN_E_INVALID,
                "tarn_torch_query: struct_size is less than that of the first "
                "version");
  }
  std::memset(out_stats, 0, size);
  out_stats->struct_size = size;
  *out_size = size;
  return TARN_OK;
}

// Adds what the device's own pool holds.
tarn_status add_own(const torch_device *device, tarn_torch_stats *stats) {
  tarn_pool_stats own = {};
  tarn_status status = query(device->pool, &own);
  if (status != TARN_OK) return status;
  stats->reserved = own.reserved_bytes;
  stats->reserved_peak = own.reserved_peak_bytes;
  stats->live = own.live_bytes;
  stats->live_peak = own.live_peak_bytes;
  stats->asleep = own.asleep_bytes;
  stats->blocks = own.live_blocks;
  stats->allocs = own.allocs;
  stats->frees = own.frees;
  stats->failures = own.failures;
  stats->device_allocs = own.device_allocs;
  return TARN_OK;
}

// Adds what pools of graphs hold.
tarn_status add_graphs(torch_device *device, tarn_torch_stats *stats) {
  std::lock_guard<std::mutex> guard(device->lock);
  for (graph_pool *graph = device->graphs; graph != nullptr;
       graph = graph->next) {
    tarn_pool_stats its = {};
    tarn_status status = query(graph->pool, &its);
    if (status != TARN_OK) return status;
    stats->reserved += its.reserved_bytes;
    stats->live += its.live_bytes;
    stats->blocks += its.live_blocks;
  }
  return TARN_OK;
}

// The pool of device |number|, and the tag |name|.
tarn_status find_tag(int number, const char *name, torch_device **out_device,
                     tarn_tag *out_tag) {
  tarn_status status = find_device(number, out_device);
  return status != TARN_OK ? status : keep(tarn_pool_tag(name, out_tag));
}

// --- closing ---------------------------------------------------------------

void drop_streams(torch_device *device) {
  for (stream_slot &slot : device->slots) {
    if (slot.native.exchange(nullptr) != nullptr)
      (void)tarn_stream_destroy(slot.stream);
  }
  tarn_stream *standard = device->standard.exchange(nullptr);
  if (standard != nullptr) (void)tarn_stream_destroy(standard);
  device->stream_count = 0;
}

tarn_status close_device(torch_device *device) {
  std::lock_guard<std::mutex> guard(device->lock);
  drop_streams(device);
  (void)tarn_device_synchronize(device->device);  // or it would not close
  sweep_graphs(device);
  return keep(tarn_device_close(device->device));
}

}  // namespace

// --- called by PyTorch -----------------------------------------------------

void *tarn_torch_alloc(size_t size, int device, void *stream) {
  void *ptr = nullptr;
  if (allocate(size, device, stream, &ptr) != TARN_OK)
    throw std::runtime_error(last_error);
  return ptr;
}

void *tarn_torch_alloc_or_null(size_t size, int device, void *stream) {
  void *ptr = nullptr;
  try {
    (void)allocate(size, device, stream, &ptr);
  } catch (...) {  // a filter of PyTorch's
    ptr = nullptr;
  }
  return ptr;
}

void tarn_torch_free(void *ptr, size_t, int device, void *stream) {
  if (ptr == nullptr) return;
  if (release(ptr, device, stream) != TARN_OK) complain("free of", ptr);
}

void tarn_torch_record_stream(void *ptr, void *stream) {
  if (ptr == nullptr) return;
  tarn_status status =
      fail(TARN_E_INVALID, "no block of an open device is there");
  any_device([&](torch_device *device) {
    tarn_block block = {};
    used_stream used;
    if (!find_block(device, ptr, &block)) return false;
    status = used.find(device, stream);
    if (status == TARN_OK) status = keep(tarn_block_use_on(&block, used.get()));
    return true;
  });
  if (status != TARN_OK) complain("record_stream of", ptr);
}

void tarn_torch_reset() {
  any_device([](torch_device *device) {
    {
      std::lock_guard<std::mutex> guard(device->lock);
      sweep_graphs(device);
    }
    if (keep(tarn_pool_trim(device->pool, 0)) != TARN_OK)
      complain("empty_cache of pool", device->pool);
    return false;
  });
}

void *tarn_torch_base_alloc(void *ptr, size_t *out_size) {
  void *base = ptr;
  size_t size = 0;
  any_device([&](torch_device *device) {
    return find_base(device, ptr, &base, &size);
  });
  if (out_size != nullptr) *out_size = size;
  return base;
}

void tarn_torch_memory_fraction(double fraction, int device) {
  if (limit(device, fraction) != TARN_OK)
    complain("memory fraction of a device", nullptr);
}

void tarn_torch_begin_pool(int device, tarn_torch_pool_id id,
                           tarn_torch_filter filter) {
  torch_device *found = nullptr;
  tarn_status status = find_device(device, &found);
  if (status == TARN_OK) {
    std::lock_guard<std::mutex> guard(found->lock);
    sweep_graphs(found);
    status = begin_graph(found, id, &filter);
  }
  if (status != TARN_OK) throw std::runtime_error(last_error);
}

void tarn_torch_end_pool(int device, tarn_torch_pool_id id) {
  torch_device *found = nullptr;
  if (find_device(device, &found) != TARN_OK) return;
  std::lock_guard<std::mutex> guard(found->lock);
  graph_pool *graph = find_graph(found, id);
  if (graph != nullptr && end_graph(found, graph) != TARN_OK)
    complain("the end of a capture into pool", graph->pool);
}

void tarn_torch_release_pool(int device, tarn_torch_pool_id id) {
  torch_device *found = nullptr;
  if (find_device(device, &found) != TARN_OK) return;
  std::lock_guard<std::mutex> guard(found->lock);
  graph_pool *graph = find_graph(found, id);
  if (graph == nullptr) return;
  tarn_status status = end_graph(found, graph);
  if (status == TARN_OK) status = keep(tarn_pool_end_graphs(graph->pool));
  if (status != TARN_OK) complain("release of pool", graph->pool);
  graph->is_released = true;
  sweep_graphs(found);
}

// --- called by programs ----------------------------------------------------

const char *tarn_torch_last_error() {
  return last_error;
}

tarn_status tarn_torch_pool(int device, tarn_pool **out_pool) {
  torch_device *found = nullptr;
  if (out_pool == nullptr)
    return fail(TARN_E_INVALID, "tarn_torch_pool: NULL in place of a pool");
  *out_pool = nullptr;
  tarn_status status = find_device(device, &found);
  if (status == TARN_OK) *out_pool = found->pool;
  return status;
}

tarn_status tarn_torch_query(int device, tarn_torch_stats *out_stats) {
  torch_device *found = nullptr;
  tarn_torch_stats stats = {};
  size_t size = 0;
  tarn_status status = check_stats(out_stats, &size);
  if (status == TARN_OK) status = find_device(device, &found);
  if (status == TARN_OK) status = add_own(found, &stats);
  if (status == TARN_OK) status = add_graphs(found, &stats);
  if (status != TARN_OK) return status;
  stats.struct_size = size;
  std::memcpy(out_stats, &stats, size < sizeof stats ? size : sizeof stats);
  return TARN_OK;
}

tarn_status tarn_torch_reset_peaks(int device) {
  torch_device *found = nullptr;
  tarn_status status = find_device(device, &found);
  return status != TARN_OK ? status : keep(tarn_pool_reset_peaks(found->pool));
}

tarn_status tarn_torch_snapshot(int device, const char *path) {
  torch_device *found = nullptr;
  tarn_status status = find_device(device, &found);
  if (status != TARN_OK) return status;
  return keep(tarn_pool_snapshot(found->pool, TARN_TRACE_FORMAT_TARN, path));
}

tarn_status tarn_torch_tag_push(const char *name) {
  tarn_tag tag = 0;
  if (tag_count == MOST_TAGS)
    return fail(TARN_E_STATE, "32 tags are pushed on this thread");
  tarn_status status = keep(tarn_pool_tag(name, &tag));
  if (status == TARN_OK) tags[tag_count++] = tag;
  return status;
}

tarn_status tarn_torch_tag_pop() {
  if (tag_count == 0)
    return fail(TARN_E_STATE, "no tag is pushed on this thread");
  tag_count--;
  return TARN_OK;
}

tarn_status tarn_torch_sleep(int device, const char *name, int save) {
  torch_device *found = nullptr;
  tarn_tag tag = 0;
  tarn_status status = find_tag(device, name, &found, &tag);
  if (status != TARN_OK) return status;
  return keep(tarn_pool_sleep(found->pool, tag,
                              save != 0 ? TARN_SLEEP_SAVE : TARN_SLEEP_DROP));
}

tarn_status tarn_torch_wake(int device, const char *name) {
  torch_device *found = nullptr;
  tarn_tag tag = 0;
  tarn_status status = find_tag(device, name, &found, &tag);
  return status != TARN_OK ? status : keep(tarn_pool_wake(found->pool, tag));
}

tarn_status tarn_torch_close() {
  tarn_status first = TARN_OK;
  std::lock_guard<std::mutex> guard(devices_lock);
  for (auto &entry : devices) {
    torch_device *device = entry.load();
    if (device == nullptr) continue;
    tarn_status status = close_device(device);
    if (status == TARN_E_STATE) {
      first = first != TARN_OK ? first : status;
      continue;
    }
    first = first != TARN_OK ? first : status;
    entry.store(nullptr);
    delete device;
  }
  return first;
}
