// Addresses for blocks without one: living blocks do not overlap.
#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/trace_build.h"
#include "trace/writers.h"

static bool overlap(const tarn_trace *trace, const uint64_t *addresses,
                    size_t a, size_t b) {
  return addresses[a] < addresses[b] + trace->blocks[b].size &&
         addresses[b] < addresses[a] + trace->blocks[a].size;
}

// Of blocks a < b in order of birth: whether b is born while a lives.
static bool meet(const tarn_trace *trace, size_t a, size_t b) {
  uint32_t born = trace->blocks[b].born;
  if (born == TARN_TRACE_BASELINE) return true;
  uint32_t died = trace->blocks[a].died;
  return died == TARN_TRACE_NEVER || died > born;
}

static void assert_apart(const tarn_trace *trace, const uint64_t *addresses) {
  for (size_t a = 0; a < trace->block_count; a++) {
    require(addresses[a] != 0);
    for (size_t b = a + 1; b < trace->block_count; b++) {
      if (!meet(trace, a, b)) continue;
      require(!overlap(trace, addresses, a, b));
    }
  }
}

static uint64_t highest(const tarn_trace *trace, const uint64_t *addresses) {
  uint64_t end = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    uint64_t upto = addresses[i] + trace->blocks[i].size;
    if (upto > end) end = upto;
  }
  return end;
}

TEST_LOOP(workloads_are_laid_out, 8) {
  uint64_t *addresses = NULL;
  uint64_t *again = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make(tarn_trace_workload((size_t)_i), &trace));
  assert_ok(tarn__places_make(trace, &addresses));
  assert_ok(tarn__places_make(trace, &again));
  assert_apart(trace, addresses);
  ck_assert_mem_eq(addresses, again, trace->block_count * sizeof *again);
  for (size_t i = 0; i < trace->block_count; i++)
    require(addresses[i] % TARN__PLACES_UNIT == 0);
  // Places are used again.
  uint64_t sum = 0;
  for (size_t i = 0; i < trace->block_count; i++)
    sum += trace->blocks[i].size;
  ck_assert_uint_lt(highest(trace, addresses), sum);
  tarn__places_free(trace, again);
  tarn__places_free(trace, addresses);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static tarn_trace *build(const tarn_trace_event *events, size_t count) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("built", &builder));
  for (size_t i = 0; i < count; i++)
    assert_ok(tarn_trace_builder_event(builder, &events[i]));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  return trace;
}

static tarn_trace_event event_of(tarn_trace_kind kind, uint64_t address,
                                 uint64_t size) {
  return (tarn_trace_event){.kind = kind,
                            .address = address,
                            .size = size,
                            .stack = TARN_TRACE_NO_STACK};
}

TEST(known_addresses_stay) {
  uint64_t *addresses = NULL;
  tarn_trace *trace =
      build((tarn_trace_event[]){event_of(TARN_TRACE_ALLOC, 4096, 100),
                                 event_of(TARN_TRACE_ALLOC, 0, 1 << 20),
                                 event_of(TARN_TRACE_FREE, 9000, 7)},
            3);
  assert_ok(tarn__places_make(trace, &addresses));
  ck_assert_uint_eq(addresses[0], 9000);  // the baseline
  ck_assert_uint_eq(addresses[1], 4096);
  ck_assert_uint_eq(addresses[2], 1 << 21);  // has none
  ck_assert_uint_eq(tarn__places_of(addresses, &trace->events[1]), 1 << 21);
  ck_assert_uint_eq(tarn__places_of(addresses, &trace->events[2]), 9000);
  tarn__places_free(trace, addresses);
  tarn_trace_destroy(trace);
}

TEST(no_blocks_no_addresses) {
  uint64_t *addresses = NULL;
  tarn_trace *trace =
      build((tarn_trace_event[]){event_of(TARN_TRACE_OOM, 77, 5)}, 1);
  assert_ok(tarn__places_make(trace, &addresses));
  ck_assert_ptr_null(addresses);
  ck_assert_uint_eq(tarn__places_of(addresses, &trace->events[0]), 77);
  tarn__places_free(trace, addresses);
  tarn_trace_destroy(trace);
}

// Each class holds what is put into it, up to the largest sizes there are.
TEST(sizes_of_all_kinds) {
  static const uint64_t sizes[] = {1,
                                   511,
                                   512,
                                   513,
                                   4095,
                                   4096,
                                   4097,
                                   4608,
                                   4609,
                                   8191,
                                   8192,
                                   8193,
                                   9215,
                                   9217,
                                   1 << 30,
                                   (1 << 30) + 1,
                                   UINT64_C(1) << 62};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  tarn_trace trace = {
      .name = "made", .block_count = COUNT, .baseline_count = COUNT};
  tarn_trace_block blocks[COUNT];
  uint64_t *addresses = NULL;
  for (size_t i = 0; i < COUNT; i++)
    blocks[i] = (tarn_trace_block){.size = sizes[i],
                                   .born = TARN_TRACE_BASELINE,
                                   .died = TARN_TRACE_NEVER};
  trace.blocks = blocks;
  assert_ok(tarn__places_make(&trace, &addresses));
  assert_apart(&trace, addresses);
  tarn__places_free(&trace, addresses);
}

TEST(beyond_64_bits) {
  uint64_t *addresses = NULL;
  tarn_trace *trace =
      build((tarn_trace_event[]){event_of(TARN_TRACE_ALLOC, 1, UINT64_MAX - 2),
                                 event_of(TARN_TRACE_ALLOC, 0, 1)},
            2);
  assert_status(tarn__places_make(trace, &addresses), TARN_E_UNSUPPORTED);
  assert_error_says("does not fit into 64 bits");
  ck_assert_ptr_null(addresses);
  tarn_trace_destroy(trace);
  trace = build(
      (tarn_trace_event[]){event_of(TARN_TRACE_ALLOC, 0, UINT64_MAX - 2)}, 1);
  assert_status(tarn__places_make(trace, &addresses), TARN_E_UNSUPPORTED);
  assert_error_says("a block of 18446744073709551613 bytes");
  ck_assert_uint_gt(tarn_host_memory(), 0);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static void lay_out_once(void *context) {
  uint64_t *addresses = NULL;
  tarn_status status = tarn__places_make(context, &addresses);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (addresses != NULL));
  tarn__places_free(context, addresses);
}

TEST(no_memory) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  ck_assert_uint_ge(faults_sweep(lay_out_once, trace), 2);
  tarn_trace_destroy(trace);
}

int main(void) {
  faults_install();
  return run_tests();
}
