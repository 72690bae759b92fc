// The document on synced memory, from its first line of code to its last, with
// its words beside each assertion: what is allocated when, its states and what
// leads from one to the other, memory from outside, its example, and the push.
//
// Each test runs on every device of support/document.h. On cpu:0 the host and
// the device are one place: what is written at the one is newest at both, so
// the head is SYNCED as soon as something was written, and nothing is ever
// copied.
#include "support/document.h"
#include "synced/state_kit.h"

static bool one_place;  // the host and the device are

static void open_on(int i) {
  gpu = document_open(i);
  one_place = strcmp(tarn_device_name(gpu), "cpu:0") == 0;
  x = buffer_on(gpu, SIZE);
}

static void close_gpu(void) {
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
  assert_ok(tarn_device_close(gpu));
}

static void close_on(void) {
  assert_ok(tarn_synced_destroy(x));
  close_gpu();
}

// What the document calls |state|, as it is on this device.
static tarn_synced_state seen_as(tarn_synced_state state) {
  return one_place && state != TARN_UNINITIALIZED ? TARN_SYNCED : state;
}

static size_t memory_at(tarn_place place) {
  return info_at(place).memory;
}

static size_t live_blocks(tarn_place place) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(place, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats.live_blocks;
}

// Of the buffer's own memory at the host and at the device.
static size_t own_blocks(void) {
  size_t device = one_place ? 0 : live_blocks(tarn_place_on(gpu));
  return device + live_blocks(one_place ? TARN_HOST
                                        : (tarn_place){gpu, TARN_PLACE_HOST});
}

// --- making it -------------------------------------------------------------

// "head_(UNINITIALIZED), own_cpu_data_(false), own_gpu_data_(false)":
// "初始化成员变量，但并没有真正的分配内存", members are initialised, but no
// memory is allocated.
TEST_LOOP(nothing_is_allocated_at_first, DOCUMENT_DEVICES) {
  open_on(_i);
  assert_head(x, TARN_UNINITIALIZED);
  ck_assert_uint_eq(tarn_synced_size(x), SIZE);         // "size_(size)"
  ck_assert_uint_eq(memory_at(TARN_HOST), 0);           // "cpu_ptr_(NULL)"
  ck_assert_uint_eq(memory_at(tarn_place_on(gpu)), 0);  // "gpu_ptr_(NULL)"
  ck_assert_uint_eq(own_blocks(), 0);
  close_on();
}

// "Memory on the host and device is allocated on demand (lazily) for efficient
// memory usage."
TEST_LOOP(memory_is_allocated_on_demand, DOCUMENT_DEVICES) {
  const void *host = NULL;
  tarn_addr device = 0;
  open_on(_i);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_uint_eq(own_blocks(),
                    1);              // "CaffeMallocHost(&cpu_ptr_, size_, ...)"
  assert_pattern(host, 0, SIZE, 0);  // "caffe_memset(size_, 0, cpu_ptr_)"
  assert_head(x, seen_as(TARN_HEAD_AT_CPU));  // "head_ = HEAD_AT_CPU"
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_uint_eq(own_blocks(), 1);
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_uint_eq(own_blocks(), one_place ? 1 : 2);
  assert_on(gpu, device, 0, SIZE, 0);
  assert_ok(tarn_synced_destroy(x));
  ck_assert_uint_eq(own_blocks(), 0);  // "if (cpu_ptr_ && own_cpu_data_)"
  close_gpu();
}

// The other side first.
TEST_LOOP(the_gpu_s_memory_on_demand, DOCUMENT_DEVICES) {
  tarn_addr device = 0;
  open_on(_i);
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_uint_eq(own_blocks(), 1);
  assert_on(gpu, device, 0, SIZE, 0);
  assert_head(x, seen_as(TARN_HEAD_AT_GPU));
  if (!one_place) ck_assert_uint_eq(memory_at(TARN_HOST), 0);
  close_on();
}

// --- its states ------------------------------------------------------------
// "HEAD_AT_GPU: caffe_gpu_memcpy(size_, gpu_ptr_, cpu_ptr_); head_ = SYNCED",
// "HEAD_AT_CPU: case SYNCED: break", and with mutable_cpu_data "head_ =
// HEAD_AT_CPU", whatever it was; to_gpu() alike. "NO_GPU" is a status.

typedef enum call {
  CPU_DATA,
  MUTABLE_CPU,
  GPU_DATA,
  MUTABLE_GPU,
  SET_CPU,
  SET_GPU,
  ASYNC_PUSH,
  CALLS,
} call;

// What a call may be seen to do.
enum {
  HOST = 1 << 0,    // there is memory of its own at the host afterwards
  DEVICE = 1 << 1,  // ... at the device
  ZEROS = 1 << 2,   // zeros are what it shows
  H2D = 1 << 3,     // one copy of all bytes
  D2H = 1 << 4,
  REFUSED = 1 << 5,  // TARN_E_STATE
};

typedef struct cell {
  tarn_synced_state head;
  call made;
  tarn_synced_state next;
  unsigned does;
} cell;

static const cell cells[] = {
    {TARN_UNINITIALIZED, CPU_DATA, TARN_HEAD_AT_CPU, HOST | ZEROS},
    {TARN_UNINITIALIZED, MUTABLE_CPU, TARN_HEAD_AT_CPU, HOST | ZEROS},
    {TARN_UNINITIALIZED, GPU_DATA, TARN_HEAD_AT_GPU, DEVICE | ZEROS},
    {TARN_UNINITIALIZED, MUTABLE_GPU, TARN_HEAD_AT_GPU, DEVICE | ZEROS},
    {TARN_UNINITIALIZED, SET_CPU, TARN_HEAD_AT_CPU, 0},
    {TARN_UNINITIALIZED, SET_GPU, TARN_HEAD_AT_GPU, 0},
    {TARN_UNINITIALIZED, ASYNC_PUSH, TARN_UNINITIALIZED, REFUSED},

    {TARN_HEAD_AT_CPU, CPU_DATA, TARN_HEAD_AT_CPU, HOST},
    {TARN_HEAD_AT_CPU, MUTABLE_CPU, TARN_HEAD_AT_CPU, HOST},
    {TARN_HEAD_AT_CPU, GPU_DATA, TARN_SYNCED, HOST | DEVICE | H2D},
    {TARN_HEAD_AT_CPU, MUTABLE_GPU, TARN_HEAD_AT_GPU, HOST | DEVICE | H2D},
    {TARN_HEAD_AT_CPU, SET_CPU, TARN_HEAD_AT_CPU, 0},
    {TARN_HEAD_AT_CPU, SET_GPU, TARN_HEAD_AT_GPU, HOST},
    {TARN_HEAD_AT_CPU, ASYNC_PUSH, TARN_SYNCED, HOST | DEVICE | H2D},

    {TARN_HEAD_AT_GPU, CPU_DATA, TARN_SYNCED, HOST | DEVICE | D2H},
    {TARN_HEAD_AT_GPU, MUTABLE_CPU, TARN_HEAD_AT_CPU, HOST | DEVICE | D2H},
    {TARN_HEAD_AT_GPU, GPU_DATA, TARN_HEAD_AT_GPU, DEVICE},
    {TARN_HEAD_AT_GPU, MUTABLE_GPU, TARN_HEAD_AT_GPU, DEVICE},
    {TARN_HEAD_AT_GPU, SET_CPU, TARN_HEAD_AT_CPU, DEVICE},
    {TARN_HEAD_AT_GPU, SET_GPU, TARN_HEAD_AT_GPU, 0},
    {TARN_HEAD_AT_GPU, ASYNC_PUSH, TARN_HEAD_AT_GPU, DEVICE | REFUSED},

    {TARN_SYNCED, CPU_DATA, TARN_SYNCED, HOST | DEVICE},
    {TARN_SYNCED, MUTABLE_CPU, TARN_HEAD_AT_CPU, HOST | DEVICE},
    {TARN_SYNCED, GPU_DATA, TARN_SYNCED, HOST | DEVICE},
    {TARN_SYNCED, MUTABLE_GPU, TARN_HEAD_AT_GPU, HOST | DEVICE},
    {TARN_SYNCED, SET_CPU, TARN_HEAD_AT_CPU, DEVICE},
    {TARN_SYNCED, SET_GPU, TARN_HEAD_AT_GPU, HOST},
    {TARN_SYNCED, ASYNC_PUSH, TARN_SYNCED, HOST | DEVICE | REFUSED},
};
enum { CELLS = sizeof cells / sizeof cells[0] };

static cell cell_of(int number) {
  cell of = cells[number];
  if (!one_place) return of;
  if (of.next != TARN_UNINITIALIZED) of.next = TARN_SYNCED;
  if (of.head != TARN_UNINITIALIZED) of.does &= ~(unsigned)REFUSED;
  of.does &= ~(unsigned)(H2D | D2H);
  return of;
}

static void lead_to(tarn_synced_state head) {
  tarn_addr data = 0;
  if (head == TARN_HEAD_AT_GPU) write_at_gpu();
  if (head == TARN_HEAD_AT_CPU || head == TARN_SYNCED) write_at_cpu();
  if (head == TARN_SYNCED) assert_ok(tarn_synced_gpu_data(x, &data));
  assert_head(x, seen_as(head));
}

static tarn_status push_and_wait(void) {
  tarn_status status = tarn_synced_async_gpu_push(x, stream);
  if (status == TARN_OK) assert_ok(tarn_stream_synchronize(stream));
  return status;
}

// What a call gave: a pointer of the host, or an address of the device.
typedef struct given {
  const void *pointer;
  tarn_addr address;
} given;

static tarn_status make_call(call made, given *out) {
  void *data = NULL;
  tarn_status status = TARN_OK;
  *out = (given){NULL, 0};
  switch (made) {
    case CPU_DATA:
      return tarn_synced_cpu_data(x, &out->pointer);
    case MUTABLE_CPU:
      status = tarn_synced_mutable_cpu_data(x, &data);
      out->pointer = data;
      return status;
    case GPU_DATA:
      return tarn_synced_gpu_data(x, &out->address);
    case MUTABLE_GPU:
      return tarn_synced_mutable_gpu_data(x, &out->address);
    case SET_CPU:
      return tarn_synced_set_cpu_data(x, outside_host);
    case SET_GPU:
      return tarn_synced_set_gpu_data(x, outside_device);
    case ASYNC_PUSH:
    case CALLS:
    default:
      return push_and_wait();
  }
}

static void assert_given(const cell *of, given got) {
  unsigned seed = (of->does & ZEROS) != 0 ? 0 : INSIDE;
  bool host = of->made == CPU_DATA || of->made == MUTABLE_CPU;
  bool device = of->made == GPU_DATA || of->made == MUTABLE_GPU;
  ck_assert_int_eq(got.pointer != NULL, host);
  ck_assert_int_eq(got.address != 0, device);
  if (host) assert_pattern(got.pointer, 0, SIZE, seed);
  if (device) assert_on(gpu, got.address, 0, SIZE, seed);
}

// "谁分配谁负责释放": who allocates frees. What was set is not the buffer's
// own.
static void assert_memory(const cell *of) {
  tarn_synced_info host = info_at(TARN_HOST);
  tarn_synced_info device = info_at(tarn_place_on(gpu));
  bool set_host = of->made == SET_CPU;
  bool set_device = of->made == SET_GPU;
  bool at_host = set_host || (of->does & HOST) != 0;
  bool at_device = set_device || (of->does & DEVICE) != 0;
  if (one_place) {
    at_host = at_device = at_host || at_device;
    set_host = set_device = set_host || set_device;
  }
  ck_assert_uint_eq(host.memory, at_host ? SIZE : 0);
  ck_assert_uint_eq(device.memory, at_device ? SIZE : 0);
  ck_assert_int_eq(host.borrowed, set_host);
  ck_assert_int_eq(device.borrowed, set_device);
}

static void assert_copies(const cell *of) {
  uint64_t up = (of->does & H2D) != 0;
  uint64_t down = (of->does & D2H) != 0;
  ck_assert_uint_eq(h2d().copies, up);
  ck_assert_uint_eq(h2d().bytes_moved, up * (uint64_t)SIZE);
  ck_assert_uint_eq(d2h().copies, down);
  ck_assert_uint_eq(d2h().bytes_moved, down * (uint64_t)SIZE);
  ck_assert_uint_eq(all_copies(), up + down);
}

// Which side is the newest shows in what the other one reads.
static void assert_both_sides_read(const cell *of) {
  bool set = of->made == SET_CPU || of->made == SET_GPU;
  unsigned seed = set ? OUTSIDE : of->next == TARN_UNINITIALIZED ? 0 : INSIDE;
  if ((of->does & ZEROS) != 0) seed = 0;
  assert_range(x, 0, SIZE, TARN_HOST, seed);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), seed);
}

TEST_LOOP(each_cell, DOCUMENT_DEVICES *CELLS) {
  given got;
  open_on(_i / CELLS);
  const cell of = cell_of(_i % CELLS);
  open_outside();
  lead_to(of.head);
  assert_ok(tarn_synced_traffic_reset(x));
  tarn_status status = make_call(of.made, &got);
  ck_assert_int_eq(status, (of.does & REFUSED) ? TARN_E_STATE : TARN_OK);
  assert_head(x, of.next);
  assert_copies(&of);
  assert_memory(&of);
  assert_given(&of, got);
  assert_both_sides_read(&of);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_gpu();
}

TEST(the_table_has_each_cell_once) {
  bool seen[4][CALLS] = {{false}};
  for (int i = 0; i < CELLS; i++) {
    ck_assert(!seen[cells[i].head][cells[i].made]);
    seen[cells[i].head][cells[i].made] = true;
  }
  ck_assert_uint_eq(CELLS, (size_t)4 * CALLS);
}

// A state is left in the same way, however it was reached: the zeros that a
// const call has shown are contents like others.
TEST_LOOP(zeros_that_were_shown_are_copied, DOCUMENT_DEVICES * 2) {
  const void *host = NULL;
  tarn_addr device = 0;
  open_on(_i / 2);
  bool host_first = _i % 2 == 0;
  if (host_first) assert_ok(tarn_synced_cpu_data(x, &host));
  assert_ok(tarn_synced_gpu_data(x, &device));
  if (!host_first) assert_ok(tarn_synced_cpu_data(x, &host));
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(h2d().copies, host_first && !one_place);
  ck_assert_uint_eq(d2h().copies, !host_first && !one_place);
  assert_pattern(host, 0, SIZE, 0);
  assert_on(gpu, device, 0, SIZE, 0);
  close_on();
}

// --- memory from outside ---------------------------------------------------

// "set_cpu_data": "cpu_ptr_ = data; head_ = HEAD_AT_CPU; own_cpu_data_ =
// false".
TEST_LOOP(set_cpu_data_points_to_outside_memory, DOCUMENT_DEVICES) {
  const void *host = NULL;
  open_on(_i);
  open_outside();
  write_at_cpu();
  ck_assert_uint_eq(own_blocks(), 1);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  ck_assert_uint_eq(own_blocks(),
                    0);  // "if (own_cpu_data_) CaffeFreeHost(...)"
  assert_head(x, seen_as(TARN_HEAD_AT_CPU));
  ck_assert_uint_eq(all_copies(), 0);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, outside_host);
  ck_assert(info_at(TARN_HOST).borrowed);
  assert_ok(tarn_synced_destroy(x));
  close_outside();  // "由外部负责释放": outside frees it, and it is as it was
  close_gpu();
}

// "set_gpu_data": "gpu_ptr_ = data; head_ = HEAD_AT_GPU; own_gpu_data_ =
// false".
TEST_LOOP(set_gpu_data_points_to_outside_memory, DOCUMENT_DEVICES) {
  tarn_addr device = 0;
  open_on(_i);
  open_outside();
  write_at_gpu();
  ck_assert_uint_eq(own_blocks(), 1);
  assert_ok(tarn_synced_set_gpu_data(x, outside_device));
  ck_assert_uint_eq(own_blocks(), 0);  // "CUDA_CHECK(cudaFree(gpu_ptr_))"
  assert_head(x, seen_as(TARN_HEAD_AT_GPU));
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_uint_eq(device, outside_device);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_gpu();
}

// "caffe_gpu_memcpy(size_, gpu_ptr_, cpu_ptr_)", where cpu_ptr_ is what was
// set.
TEST_LOOP(a_copy_goes_into_the_memory_that_was_set, DOCUMENT_DEVICES) {
  const void *host = NULL;
  tarn_addr device = 0;
  open_on(_i);
  fill_pattern(outside_host, 0, SIZE, OUTSIDE);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  assert_ok(tarn_synced_mutable_gpu_data(x, &device));
  assert_on(gpu, device, 0, SIZE, OUTSIDE);
  put_on(gpu, device, 0, SIZE, 8);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, outside_host);
  assert_pattern(outside_host, 0, SIZE, 8);
  assert_head(x, TARN_SYNCED);
  assert_ok(tarn_synced_destroy(x));
  assert_pattern(outside_host, 0, SIZE, 8);
  close_gpu();
}

TEST_LOOP(a_copy_goes_into_the_device_memory_that_was_set, DOCUMENT_DEVICES) {
  void *host = NULL;
  tarn_addr device = 0;
  open_on(_i);
  open_outside();
  assert_ok(tarn_synced_set_gpu_data(x, outside_device));
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  assert_pattern(host, 0, SIZE, OUTSIDE);
  fill_pattern(host, 0, SIZE, 8);
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_uint_eq(device, outside_device);
  assert_on(gpu, outside_device, 0, SIZE, 8);
  assert_ok(tarn_synced_destroy(x));
  put_on(gpu, outside_device, 0, SIZE, OUTSIDE);
  close_outside();
  close_gpu();
}

// "CHECK(data)".
TEST_LOOP(null_is_refused, DOCUMENT_DEVICES) {
  open_on(_i);
  assert_status(tarn_synced_set_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(x, 0), TARN_E_INVALID);
  assert_head(x, TARN_UNINITIALIZED);
  close_on();
}

// --- its example -----------------------------------------------------------

static uint64_t copies_seen[2];

// What the last access copied: "cpu->gpu", "gpu->cpu", or "no data copied".
static const char *copied(void) {
  uint64_t up = h2d().copies - copies_seen[0];
  uint64_t down = d2h().copies - copies_seen[1];
  copies_seen[0] += up;
  copies_seen[1] += down;
  ck_assert_uint_le(up + down, 1);
  return up ? "cpu->gpu" : down ? "gpu->cpu" : "no data copied";
}

static void assert_copied(const char *expected) {
  ck_assert_str_eq(copied(), one_place ? "no data copied" : expected);
}

TEST_LOOP(the_nine_lines, DOCUMENT_DEVICES) {
  const void *foo = NULL;
  tarn_addr gpu_foo = 0;
  void *bar = NULL;
  tarn_addr gpu_bar = 0;
  open_on(_i);
  // "Assuming that data are on the CPU initially, and we have a blob."
  write_at_cpu();
  assert_copied("no data copied");
  // "foo = blob.gpu_data(); // data copied cpu->gpu."
  assert_ok(tarn_synced_gpu_data(x, &gpu_foo));
  assert_copied("cpu->gpu");
  assert_on(gpu, gpu_foo, 0, SIZE, INSIDE);
  // "foo = blob.cpu_data(); // no data copied since both have up-to-date
  // contents."
  assert_ok(tarn_synced_cpu_data(x, &foo));
  assert_copied("no data copied");
  assert_head(x, TARN_SYNCED);
  // "bar = blob.mutable_gpu_data(); // no data copied."
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  assert_copied("no data copied");
  assert_head(x, seen_as(TARN_HEAD_AT_GPU));
  // "// ... some operations ..."
  put_on(gpu, gpu_bar, 0, SIZE, 3);
  // "bar = blob.mutable_gpu_data(); // no data copied when we are still on
  // GPU."
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  assert_copied("no data copied");
  // "foo = blob.cpu_data(); // data copied gpu->cpu, since the gpu side has
  // modified the data"
  assert_ok(tarn_synced_cpu_data(x, &foo));
  assert_copied("gpu->cpu");
  assert_pattern(foo, 0, SIZE, 3);
  // "foo = blob.gpu_data(); // no data copied since both have up-to-date
  // contents"
  assert_ok(tarn_synced_gpu_data(x, &gpu_foo));
  assert_copied("no data copied");
  assert_head(x, TARN_SYNCED);
  // "bar = blob.mutable_cpu_data(); // still no data copied."
  assert_ok(tarn_synced_mutable_cpu_data(x, &bar));
  assert_copied("no data copied");
  assert_head(x, seen_as(TARN_HEAD_AT_CPU));
  fill_pattern(bar, 0, SIZE, 4);
  // "bar = blob.mutable_gpu_data(); // data copied cpu->gpu."
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  assert_copied("cpu->gpu");
  assert_on(gpu, gpu_bar, 0, SIZE, 4);
  // "bar = blob.mutable_cpu_data(); // data copied gpu->cpu."
  assert_ok(tarn_synced_mutable_cpu_data(x, &bar));
  assert_copied("gpu->cpu");
  assert_pattern(bar, 0, SIZE, 4);
  ck_assert_uint_eq(all_copies(), one_place ? 0 : 4);
  ck_assert_uint_eq(all_moved(), one_place ? 0 : (uint64_t)4 * SIZE);
  close_on();
}

// "A rule of thumb is, always use the const call if you do not want to change
// the values".
TEST_LOOP(the_rule_of_thumb, DOCUMENT_DEVICES) {
  const void *foo = NULL;
  void *bar = NULL;
  tarn_addr device = 0;
  open_on(_i);
  write_at_cpu();
  for (int i = 0; i < 5; i++) {
    assert_ok(tarn_synced_gpu_data(x, &device));
    assert_ok(tarn_synced_cpu_data(x, &foo));
  }
  ck_assert_uint_eq(all_copies(), one_place ? 0 : 1);
  for (int i = 0; i < 5; i++) {
    assert_ok(tarn_synced_gpu_data(x, &device));
    assert_ok(tarn_synced_mutable_cpu_data(x, &bar));  // though it only reads
  }
  ck_assert_uint_eq(all_copies(), one_place ? 0 : 5);
  close_on();
}

// --- async_gpu_push --------------------------------------------------------

// "void async_gpu_push(const cudaStream_t& stream);"
TEST_LOOP(the_push, DOCUMENT_DEVICES) {
  tarn_addr device = 0;
  open_on(_i);
  stream = stream_on(gpu);
  write_at_cpu();
  assert_ok(tarn_synced_async_gpu_push(x, stream));
  assert_ok(tarn_stream_synchronize(stream));
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(h2d().copies, one_place ? 0 : 1);
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_uint_eq(all_copies(), one_place ? 0 : 1);  // it is there
  assert_on(gpu, device, 0, SIZE, INSIDE);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_stream_destroy(stream));
  close_gpu();
}
