// Workloads against known figures of the nets.
#include <stdio.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/trace.h"

static tarn_trace *make(const char *name) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make(name, &trace));
  return trace;
}

// The frame of an event's stack: 0 is the layer, 1 what the block is for.
static const char *frame(const tarn_trace *trace, uint32_t stack, uint32_t i) {
  ck_assert_uint_lt(stack, trace->stack_count);
  if (i >= trace->stacks[stack].count) return "";
  uint32_t index = trace->frame_indices[trace->stacks[stack].first + i];
  return trace->frames[index].function;
}

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text);
  return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

// Of the blocks with |role| whose layer contains |layer|: how many, and bytes.
static size_t count_blocks(const tarn_trace *trace, const char *role,
                           const char *layer, uint64_t *out_bytes) {
  size_t count = 0;
  *out_bytes = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (strcmp(frame(trace, block->stack, 1), role) != 0) continue;
    if (strstr(frame(trace, block->stack, 0), layer) == NULL) continue;
    *out_bytes += block->size;
    count++;
  }
  return count;
}

TEST(names_are_listed) {
  static const char *const names[] = {"@bert-layer", "@resnet50-b8",
                                      "@resnet50-b32", "@kv-decode", "@random"};
  tarn_trace *trace = NULL;
  for (size_t i = 0; i < 5; i++) {
    ck_assert_str_eq(tarn_trace_workload(i), names[i]);
  }
  ck_assert_ptr_null(tarn_trace_workload(5));
  ck_assert_ptr_null(tarn_trace_workload(SIZE_MAX));
  assert_status(tarn_trace_make("@bert", &trace), TARN_E_INVALID);
  assert_error_says("@bert-layer, @resnet50-b8, @resnet50-b32, @kv-decode");
  ck_assert_ptr_null(trace);
  assert_status(tarn_trace_make(NULL, &trace), TARN_E_INVALID);
}

TEST_LOOP(each_frees_what_it_takes, 5) {
  tarn_trace *trace = make(tarn_trace_workload((size_t)_i));
  uint64_t live = 0;
  uint64_t peak = 0;
  ck_assert_uint_eq(trace->baseline_count, 0);
  ck_assert_str_eq(trace->format, "workload");
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    const tarn_trace_block *block = &trace->blocks[event->block];
    ck_assert_uint_eq(event->size, block->size);
    ck_assert_uint_eq(event->stack, block->stack);
    if (event->kind == TARN_TRACE_ALLOC) {
      ck_assert_uint_eq(block->born, i);
      live += event->size;
    } else {
      ck_assert_int_eq(event->kind, TARN_TRACE_FREE);
      ck_assert_uint_eq(block->died, i);
      live -= event->size;
    }
    if (live > peak) peak = live;
  }
  ck_assert_uint_eq(live, 0);
  ck_assert_uint_eq(peak, trace->live_peak_bytes);
  ck_assert_uint_eq(trace->event_count, 2 * trace->block_count);
  ck_assert_uint_eq(trace->request_count, trace->event_count);
  for (size_t i = 0; i < trace->block_count; i++) {
    ck_assert_uint_gt(trace->blocks[i].size, 0);
  }
  tarn_trace_destroy(trace);
}

TEST_LOOP(the_same_name_gives_the_same_trace, 5) {
  const char *name = tarn_trace_workload((size_t)_i);
  tarn_trace *one = make(name);
  tarn_trace *two = make(name);
  ck_assert_uint_eq(one->event_count, two->event_count);
  ck_assert_mem_eq(one->events, two->events,
                   one->event_count * sizeof *one->events);
  ck_assert_mem_eq(one->blocks, two->blocks,
                   one->block_count * sizeof *one->blocks);
  ck_assert_mem_eq(one->frame_indices, two->frame_indices,
                   one->frame_index_count * sizeof *one->frame_indices);
  tarn_trace_destroy(two);
  tarn_trace_destroy(one);
}

TEST_LOOP(resnet50_is_resnet50, 2) {
  static const struct {
    const char *name;
    uint64_t batch;
  } nets[] = {{"@resnet50-b8", 8}, {"@resnet50-b32", 32}};
  tarn_trace *trace = make(nets[_i].name);
  uint64_t batch = nets[_i].batch;
  uint64_t bytes = 0;
  size_t convs = count_blocks(trace, "output", "conv", &bytes);
  convs += count_blocks(trace, "output", "downsample.0", &bytes);
  ck_assert_uint_eq(convs, 53);
  ck_assert_uint_eq(count_blocks(trace, "output", "relu", &bytes), 49);
  ck_assert_uint_eq(count_blocks(trace, "output", "add", &bytes), 16);
  ck_assert_uint_eq(count_blocks(trace, "output", "fc", &bytes), 1);
  ck_assert_uint_eq(bytes, batch * 1000 * 4);
  // 53 weights, 53 pairs of the norms, weight and bias of the end
  ck_assert_uint_eq(count_blocks(trace, "gradient of parameters", "", &bytes),
                    161);
  ck_assert_uint_eq(bytes, 25557032ull * 4);
  ck_assert_uint_eq(count_blocks(trace, "input", "images", &bytes), 1);
  ck_assert_uint_eq(bytes, batch * 3 * 224 * 224 * 4);
  ck_assert_uint_eq(count_blocks(trace, "output", "layer4.2.conv3", &bytes), 1);
  ck_assert_uint_eq(bytes, batch * 2048 * 7 * 7 * 4);
  // All convolutions' outputs together: 11,113,984 elements per image.
  (void)count_blocks(trace, "output", "conv", &bytes);
  uint64_t sum = bytes;
  (void)count_blocks(trace, "output", "downsample.0", &bytes);
  ck_assert_uint_eq(sum + bytes, batch * 11113984 * 4);
  // They and as much for what follows them live at the end of forward.
  ck_assert_uint_gt(trace->live_peak_bytes, 7 * (sum + bytes) / 4);
  ck_assert_uint_lt(trace->live_peak_bytes, 9 * (sum + bytes) / 4);
  tarn_trace_destroy(trace);
}

TEST(a_bert_layer_is_one) {
  tarn_trace *trace = make("@bert-layer");
  uint64_t bytes = 0;
  ck_assert_uint_eq(count_blocks(trace, "gradient of parameters", "", &bytes),
                    16);
  ck_assert_uint_eq(bytes, 7087872ull * 4);
  ck_assert_uint_eq(count_blocks(trace, "output", "scores", &bytes), 1);
  ck_assert_uint_eq(bytes, 4ull * 12 * 128 * 128 * 4);
  ck_assert_uint_eq(count_blocks(trace, "kept for backward", "dropout", &bytes),
                    3);
  ck_assert_uint_eq(bytes, 4ull * 12 * 128 * 128 + 2ull * 4 * 128 * 768);
  ck_assert_uint_eq(count_blocks(trace, "output", "gelu", &bytes), 1);
  ck_assert_uint_eq(bytes, 4ull * 128 * 3072 * 4);
  tarn_trace_destroy(trace);
}

TEST(caches_grow_by_a_token) {
  tarn_trace *trace = make("@kv-decode");
  const uint64_t token = 8ull * 768 * 4;  // of all sequences
  uint64_t want = 64 * token;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    const char *layer = frame(trace, block->stack, 0);
    if (strcmp(layer, "h.11.attn.key_cache") != 0) continue;
    ck_assert_uint_eq(block->size, want);
    want += token;
  }
  ck_assert_uint_eq(want, (64 + 48 + 1) * token);
  // At the end 24 caches of 112 tokens are nearly all that lives.
  ck_assert_uint_gt(trace->live_peak_bytes, 24ull * 112 * token);
  ck_assert_uint_lt(trace->live_peak_bytes, 27ull * 112 * token);
  tarn_trace_destroy(trace);
}

TEST(random_covers_its_range) {
  tarn_trace *trace = make("@random");
  size_t of_class[27] = {0};
  ck_assert_uint_eq(trace->block_count, 10000);
  for (size_t i = 0; i < trace->block_count; i++) {
    uint64_t size = trace->blocks[i].size;
    ck_assert_uint_ge(size, 256);
    ck_assert_uint_le(size, 64 << 20);
    of_class[63 - __builtin_clzll(size)]++;
    ck_assert(ends_with(frame(trace, trace->blocks[i].stack, 0), "or more"));
  }
  for (int bit = 8; bit <= 25; bit++)
    ck_assert_uint_gt(of_class[bit], 400);
  ck_assert_uint_le(trace->live_peak_bytes, 1 << 30);
  tarn_trace_destroy(trace);
}

static void make_scenario(void *context) {
  tarn_trace *trace = NULL;
  tarn_status status = tarn_trace_make(context, &trace);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  ck_assert((status == TARN_OK) == (trace != NULL));
  tarn_trace_destroy(trace);
}

TEST_LOOP(every_failing_allocation_is_survived, 3) {
  static char *const names[] = {"@bert-layer", "@resnet50-b8", "@random"};
  size_t faults = faults_sweep(make_scenario, names[_i]);
  printf("trace: %zu faults while making %s, 0 leaks\n", faults, names[_i]);
  ck_assert_uint_gt(faults, 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
