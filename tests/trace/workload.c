// Workloads against known figures of the nets.
#include <stdio.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/trace.h"

enum { WORKLOADS = 8 };

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
  static const char *const names[] = {
      "@bert-layer", "@resnet50-b8", "@resnet50-b32", "@kv-decode",
      "@random",     "@serving",     "@varlen",       "@dataloader"};
  tarn_trace *trace = NULL;
  for (size_t i = 0; i < WORKLOADS; i++) {
    ck_assert_str_eq(tarn_trace_workload(i), names[i]);
  }
  ck_assert_ptr_null(tarn_trace_workload(WORKLOADS));
  ck_assert_ptr_null(tarn_trace_workload(SIZE_MAX));
  assert_status(tarn_trace_make("@bert", &trace), TARN_E_INVALID);
  assert_error_says(
      "@bert-layer, @resnet50-b8, @resnet50-b32, @kv-decode, @random, "
      "@serving, @varlen, @dataloader");
  ck_assert_ptr_null(trace);
  assert_status(tarn_trace_make(NULL, &trace), TARN_E_INVALID);
}

TEST_LOOP(each_frees_what_it_takes, WORKLOADS) {
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

TEST_LOOP(the_same_name_gives_the_same_trace, WORKLOADS) {
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

// Of the blocks that one thread allocated, by thread; |*out_foreign| is how
// many another thread freed.
static void count_threads(const tarn_trace *trace, size_t *of_thread,
                          size_t most, size_t *out_foreign) {
  *out_foreign = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    uint32_t by = trace->events[trace->blocks[i].born].thread;
    uint32_t freed_by = trace->events[trace->blocks[i].died].thread;
    ck_assert_uint_lt(by, most);
    ck_assert_uint_lt(freed_by, most);
    of_thread[by]++;
    if (by != freed_by) ++*out_foreign;
  }
}

// Of the blocks with |role| as the outer frame and |what| as the inner.
static size_t of_kind(const tarn_trace *trace, const char *role,
                      const char *what, uint64_t *out_most) {
  size_t count = 0;
  *out_most = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (strcmp(frame(trace, block->stack, 1), role) != 0) continue;
    if (strcmp(frame(trace, block->stack, 0), what) != 0) continue;
    if (block->size > *out_most) *out_most = block->size;
    count++;
  }
  return count;
}

TEST(a_server_has_texts_and_workers) {
  tarn_trace *trace = make("@serving");
  const uint64_t room = 256ull * 2 * 512 * 2;  // of 256 tokens in a layer
  size_t of_thread[5] = {0}, foreign = 0;
  uint64_t most = 0;
  ck_assert_uint_eq(of_kind(trace, "front end", "prompt", &most), 96);
  ck_assert_uint_le(most, 2048 * 8);
  ck_assert_uint_eq(of_kind(trace, "decode", "answer", &most), 96);
  ck_assert_uint_eq(of_kind(trace, "prefill", "keys_values", &most), 96 * 16);
  ck_assert_uint_eq(most, 8 * room);
  size_t grown = of_kind(trace, "decode", "keys_values", &most);
  ck_assert_uint_gt(grown, 0);
  ck_assert_uint_eq(grown % 16, 0);
  ck_assert_uint_eq(most % room, 0);
  (void)of_kind(trace, "decode", "ids", &most);
  ck_assert_uint_eq(most, 8 * 8);  // a full batch
  count_threads(trace, of_thread, 5, &foreign);
  ck_assert_uint_eq(of_thread[0], 96);
  for (size_t i = 1; i < 5; i++)
    ck_assert_uint_gt(of_thread[i], 2000);
  // Prompts, answers, and most of the first caches.
  ck_assert_uint_gt(foreign, 96 + 96 + 96 * 16 / 2);
  ck_assert_uint_lt(foreign, trace->block_count / 5);
  tarn_trace_destroy(trace);
}

TEST(steps_of_texts_differ_in_length) {
  tarn_trace *trace = make("@varlen");
  bool seen[513] = {false};
  size_t steps = 0, lengths = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (strcmp(frame(trace, block->stack, 0), "attention_mask") != 0) continue;
    size_t length = block->size / (8 * 4);  // of floats
    ck_assert_uint_ge(length, 8);
    ck_assert_uint_le(length, 512);
    if (!seen[length]) lengths++;
    seen[length] = true;
    steps++;
  }
  ck_assert_uint_eq(steps, 56);
  ck_assert_uint_gt(lengths, 45);
  uint64_t bytes = 0;
  ck_assert_uint_eq(count_blocks(trace, "gradient of parameters", "", &bytes),
                    56 * 2 * 16);
  ck_assert_uint_eq(bytes, 56ull * 2 * 7087872 * 4);
  tarn_trace_destroy(trace);
}

TEST(a_loader_frees_in_other_threads) {
  tarn_trace *trace = make("@dataloader");
  size_t of_thread[7] = {0}, foreign = 0;
  uint64_t most = 0;
  ck_assert_uint_eq(of_kind(trace, "reader", "file", &most), 200 * 16);
  ck_assert_uint_le(most, 1 << 20);
  ck_assert_uint_eq(of_kind(trace, "decoder", "pixels", &most), 200 * 16);
  ck_assert_uint_eq(of_kind(trace, "decoder", "sample", &most), 200 * 16);
  ck_assert_uint_le(most, 3 * 224 * 336 * 4);
  ck_assert_uint_eq(of_kind(trace, "batcher", "images", &most), 200);
  ck_assert_uint_le(most, 16 * 3 * 224 * 336 * 4);
  count_threads(trace, of_thread, 7, &foreign);
  ck_assert_uint_eq(of_thread[0], 0);  // it only trains
  ck_assert_uint_eq(of_thread[1], 200 * 2);
  ck_assert_uint_eq(of_thread[2], 200 * 16);
  // All but the pixels: files, samples, and batches with their labels.
  ck_assert_uint_eq(foreign, 200 * (16 + 16 + 2));
  tarn_trace_destroy(trace);
}

// Whether the requests of two traces are the same.
static bool alike(const tarn_trace *one, const tarn_trace *two) {
  return one->event_count == two->event_count &&
         memcmp(one->events, two->events,
                one->event_count * sizeof *one->events) == 0;
}

TEST(a_seed_is_another_draw) {
  static const struct {
    const char *name, *same, *other;
    bool draws;
  } seeds[] = {
      {"@random", "@random:seed=1", "@random:seed=7", true},
      {"@serving", "@serving:seed=3", "@serving:seed=7", true},
      {"@varlen", "@varlen:seed=2", "@varlen:seed=0", true},
      {"@dataloader", "@dataloader:seed=4", "@dataloader:seed=7", true},
      {"@bert-layer", "@bert-layer:seed=1", "@bert-layer:seed=7", false}};
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    tarn_trace *usual = make(seeds[i].name);
    tarn_trace *same = make(seeds[i].same);
    tarn_trace *other = make(seeds[i].other);
    ck_assert(alike(usual, same));
    ck_assert(alike(usual, other) != seeds[i].draws);
    ck_assert_str_eq(other->name, seeds[i].other);
    tarn_trace_destroy(other);
    tarn_trace_destroy(same);
    tarn_trace_destroy(usual);
  }
}

TEST(wrong_seeds) {
  static const char *const wrong[] = {
      "@random:",        "@random:seed",
      "@random:seed=",   "@random:seed=x",
      "@random:seed=1x", "@random:seed=-1",
      "@random:seeds=1", "@random:seed=1234567890123456789"};
  tarn_trace *trace = NULL;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(tarn_trace_make(wrong[i], &trace), TARN_E_INVALID);
    assert_error_says("behind @random may only be :seed= and a number");
    ck_assert_ptr_null(trace);
  }
  assert_status(tarn_trace_make("@rand:seed=1", &trace), TARN_E_INVALID);
  assert_error_says("no workload '@rand:seed=1'");
}

static void make_scenario(void *context) {
  tarn_trace *trace = NULL;
  tarn_status status = tarn_trace_make(context, &trace);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  ck_assert((status == TARN_OK) == (trace != NULL));
  tarn_trace_destroy(trace);
}

TEST_LOOP(every_failing_allocation_is_survived, 5) {
  static char *const names[] = {"@bert-layer", "@resnet50-b8", "@random",
                                "@serving", "@dataloader"};
  size_t faults = faults_sweep(make_scenario, names[_i]);
  printf("trace: %zu faults while making %s, 0 leaks\n", faults, names[_i]);
  ck_assert_uint_gt(faults, 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
