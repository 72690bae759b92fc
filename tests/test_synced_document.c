// The document's machine: its table, cell by cell, its example word for word,
// and calls that it cannot serve.
#include "test_synced_state_kit.h"

// --- the table -------------------------------------------------------------

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

static void lead_to(tarn_synced_state head) {
  tarn_addr data = 0;
  if (head == TARN_HEAD_AT_GPU) write_at_gpu();
  if (head == TARN_HEAD_AT_CPU || head == TARN_SYNCED) write_at_cpu();
  if (head == TARN_SYNCED) assert_ok(tarn_synced_gpu_data(x, &data));
  assert_head(x, head);
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

static void assert_memory(const cell *of) {
  tarn_synced_info host = info_at(TARN_HOST);
  tarn_synced_info device = info_at(tarn_place_on(gpu));
  bool set_host = of->made == SET_CPU;
  bool set_device = of->made == SET_GPU;
  bool at_host = set_host || (of->does & HOST) != 0;
  bool at_device = set_device || (of->does & DEVICE) != 0;
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

START_TEST(each_cell) {
  const cell *of = &cells[_i];
  given got;
  open_x();
  open_outside();
  lead_to(of->head);
  assert_ok(tarn_synced_traffic_reset(x));
  tarn_status status = make_call(of->made, &got);
  ck_assert_int_eq(status, (of->does & REFUSED) ? TARN_E_STATE : TARN_OK);
  assert_head(x, of->next);
  assert_copies(of);
  assert_memory(of);
  assert_given(of, got);
  assert_both_sides_read(of);
  assert_ok(tarn_synced_destroy(x));
  close_outside();
  close_devices();
}
END_TEST

START_TEST(the_table_has_each_cell_once) {
  bool seen[4][CALLS] = {{false}};
  for (int i = 0; i < CELLS; i++) {
    ck_assert(!seen[cells[i].head][cells[i].made]);
    seen[cells[i].head][cells[i].made] = true;
  }
  ck_assert_uint_eq(CELLS, (size_t)4 * CALLS);
}
END_TEST

// A state is left in the same way, however it was reached: the zeros that a
// const call has shown are contents like others.
START_TEST(zeros_that_were_shown_are_copied) {
  const void *host = NULL;
  tarn_addr device = 0;
  open_x();
  if (_i == 0) {
    assert_ok(tarn_synced_cpu_data(x, &host));
    assert_ok(tarn_synced_gpu_data(x, &device));
  } else {
    assert_ok(tarn_synced_gpu_data(x, &device));
    assert_ok(tarn_synced_cpu_data(x, &host));
  }
  assert_head(x, TARN_SYNCED);
  ck_assert_uint_eq(h2d().copies, _i == 0);
  ck_assert_uint_eq(d2h().copies, _i == 1);
  assert_pattern(host, 0, SIZE, 0);
  assert_on(gpu, device, 0, SIZE, 0);
  close_x();
}
END_TEST

// --- the document's example ------------------------------------------------

static uint64_t copies_seen[2];

// What the last access copied: "h2d", "d2h", or "" for nothing.
static const char *copied(void) {
  uint64_t up = h2d().copies - copies_seen[0];
  uint64_t down = d2h().copies - copies_seen[1];
  copies_seen[0] += up;
  copies_seen[1] += down;
  ck_assert_uint_le(up + down, 1);
  return up ? "h2d" : down ? "d2h" : "";
}

START_TEST(the_nine_accesses_of_the_document) {
  const void *foo = NULL;
  tarn_addr gpu_foo = 0;
  void *bar = NULL;
  tarn_addr gpu_bar = 0;
  open_x();
  write_at_cpu();  // "Assuming that data are on the CPU initially"
  ck_assert_str_eq(copied(), "");
  assert_ok(tarn_synced_gpu_data(x, &gpu_foo));
  ck_assert_str_eq(copied(), "h2d");
  assert_ok(tarn_synced_cpu_data(x, &foo));
  ck_assert_str_eq(copied(), "");
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  ck_assert_str_eq(copied(), "");
  put_on(gpu, gpu_bar, 0, SIZE, 3);  // "some operations"
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  ck_assert_str_eq(copied(), "");
  assert_ok(tarn_synced_cpu_data(x, &foo));
  ck_assert_str_eq(copied(), "d2h");
  assert_pattern(foo, 0, SIZE, 3);
  assert_ok(tarn_synced_gpu_data(x, &gpu_foo));
  ck_assert_str_eq(copied(), "");
  assert_ok(tarn_synced_mutable_cpu_data(x, &bar));
  ck_assert_str_eq(copied(), "");
  fill_pattern(bar, 0, SIZE, 4);
  assert_ok(tarn_synced_mutable_gpu_data(x, &gpu_bar));
  ck_assert_str_eq(copied(), "h2d");
  assert_on(gpu, gpu_bar, 0, SIZE, 4);
  assert_ok(tarn_synced_mutable_cpu_data(x, &bar));
  ck_assert_str_eq(copied(), "d2h");
  assert_pattern(bar, 0, SIZE, 4);
  ck_assert_uint_eq(h2d().copies + d2h().copies, 4);
  ck_assert_uint_eq(all_moved(), (uint64_t)4 * SIZE);
  close_x();
}
END_TEST

// --- wrong use -------------------------------------------------------------

START_TEST(null_is_an_error_and_no_abort) {
  open_x();
  write_at_cpu();
  assert_status(tarn_synced_set_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(x, 0), TARN_E_INVALID);
  assert_status(tarn_synced_async_gpu_push(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_gpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_mutable_cpu_data(x, NULL), TARN_E_INVALID);
  assert_status(tarn_synced_mutable_gpu_data(x, NULL), TARN_E_INVALID);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  close_x();
}
END_TEST

START_TEST(no_buffer_is_an_error) {
  const void *host = &host;
  void *mutable_host = &host;
  tarn_addr device = 1;
  assert_status(tarn_synced_cpu_data(NULL, &host), TARN_E_INVALID);
  ck_assert_ptr_null(host);
  assert_status(tarn_synced_mutable_cpu_data(NULL, &mutable_host),
                TARN_E_INVALID);
  ck_assert_ptr_null(mutable_host);
  assert_status(tarn_synced_gpu_data(NULL, &device), TARN_E_INVALID);
  ck_assert_uint_eq(device, 0);
  device = 1;
  assert_status(tarn_synced_mutable_gpu_data(NULL, &device), TARN_E_INVALID);
  ck_assert_uint_eq(device, 0);
  assert_status(tarn_synced_set_cpu_data(NULL, &host), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(NULL, 1), TARN_E_INVALID);
  assert_status(tarn_synced_async_gpu_push(NULL, NULL), TARN_E_INVALID);
  ck_assert_int_eq(tarn_synced_head(NULL), TARN_UNINITIALIZED);
}
END_TEST

START_TEST(without_a_device_there_is_no_gpu) {
  tarn_addr device = 1;
  open_devices();
  x = buffer_on(NULL, SIZE);
  write_at_cpu();
  tarn_stream *of_gpu = stream_on(gpu);
  assert_status(tarn_synced_gpu_data(x, &device), TARN_E_STATE);
  assert_error_says("device");
  ck_assert_uint_eq(device, 0);
  assert_status(tarn_synced_mutable_gpu_data(x, &device), TARN_E_STATE);
  assert_status(tarn_synced_set_gpu_data(x, 1), TARN_E_STATE);
  assert_status(tarn_synced_async_gpu_push(x, of_gpu), TARN_E_STATE);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  assert_ok(tarn_stream_destroy(of_gpu));
  close_x();
}
END_TEST

START_TEST(a_stream_of_another_device_cannot_push) {
  open_x();
  write_at_cpu();
  stream = stream_on(other);
  assert_status(tarn_synced_async_gpu_push(x, stream), TARN_E_INVALID);
  assert_head(x, TARN_HEAD_AT_CPU);
  ck_assert_uint_eq(all_copies(), 0);
  assert_ok(tarn_stream_destroy(stream));
  close_x();
}
END_TEST

START_TEST(a_view_of_a_part_cannot_be_set) {
  open_x();
  tarn_synced *view = view_of(x, 0, HALF);
  assert_status(tarn_synced_set_cpu_data(view, outside_host), TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(view, 4096), TARN_E_INVALID);
  assert_head(x, TARN_UNINITIALIZED);
  tarn_synced *all = view_of(x, 0, SIZE);
  assert_ok(tarn_synced_set_cpu_data(all, outside_host));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_destroy(all));
  assert_ok(tarn_synced_destroy(view));
  close_x();
}
END_TEST

// A call that would need what an open access has changes nothing.
START_TEST(an_open_access_is_in_the_way) {
  const void *host = NULL;
  void *mutable_host = NULL;
  tarn_addr device = 0;
  open_x();
  write_at_cpu();
  tarn_access access;
  begin_on(&access, x, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE);
  assert_status(tarn_synced_cpu_data(x, &host), TARN_E_STATE);
  assert_status(tarn_synced_gpu_data(x, &device), TARN_E_STATE);
  assert_status(tarn_synced_mutable_cpu_data(x, &mutable_host), TARN_E_STATE);
  assert_status(tarn_synced_set_cpu_data(x, outside_host), TARN_E_STATE);
  assert_ok(tarn_synced_end(&access));
  begin_on(&access, x, 0, TARN_ALL, TARN_HOST, TARN_READ);
  assert_status(tarn_synced_mutable_cpu_data(x, &mutable_host), TARN_E_STATE);
  assert_status(tarn_synced_mutable_gpu_data(x, &device), TARN_E_STATE);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, access.pointer);
  assert_ok(tarn_synced_end(&access));
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_range(x, 0, SIZE, TARN_HOST, INSIDE);
  close_x();
}
END_TEST

START_TEST(names_of_states) {
  ck_assert_str_eq(tarn_synced_state_name(TARN_UNINITIALIZED), "UNINITIALIZED");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_AT_CPU), "HEAD_AT_CPU");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_AT_GPU), "HEAD_AT_GPU");
  ck_assert_str_eq(tarn_synced_state_name(TARN_SYNCED), "SYNCED");
  ck_assert_str_eq(tarn_synced_state_name(TARN_HEAD_ELSEWHERE),
                   "HEAD_ELSEWHERE");
  ck_assert_ptr_null(tarn_synced_state_name((tarn_synced_state)99));
  ck_assert_ptr_null(tarn_synced_state_name((tarn_synced_state)-1));
}
END_TEST

START_TEST(no_bytes_at_all) {
  const void *host = NULL;
  tarn_addr device = 0;
  open_devices();
  x = buffer_on(gpu, 0);
  assert_ok(tarn_synced_cpu_data(x, &host));
  assert_ok(tarn_synced_gpu_data(x, &device));
  ck_assert_ptr_null(host);
  ck_assert_uint_eq(device, 0);
  assert_head(x, TARN_UNINITIALIZED);
  assert_ok(tarn_synced_set_cpu_data(x, outside_host));
  assert_head(x, TARN_UNINITIALIZED);
  ck_assert_uint_eq(all_copies(), 0);
  close_x();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("synced_document");
  TCase *table = tcase_create("table");
  tcase_set_timeout(table, 120);
  tcase_add_loop_test(table, each_cell, 0, CELLS);
  tcase_add_loop_test(table, zeros_that_were_shown_are_copied, 0, 2);
  suite_add_tcase(suite, table);
  ADD_CASE(suite, "example", the_table_has_each_cell_once,
           the_nine_accesses_of_the_document);
  ADD_CASE(suite, "misuse", null_is_an_error_and_no_abort,
           no_buffer_is_an_error, without_a_device_there_is_no_gpu,
           a_stream_of_another_device_cannot_push,
           a_view_of_a_part_cannot_be_set, an_open_access_is_in_the_way,
           names_of_states, no_bytes_at_all);
  return run_synced_suite(suite);
}
