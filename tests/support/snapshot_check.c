// Compares traces of pools with what the pools say.
#include "support/snapshot_check.h"

#include "pool/kit.h"
#include "tarn/account.h"

enum { MOST_EVENTS = 8192 };

tarn_tag tags[TAGS];

void name_tags(void) {
  tags[1] = tag_of("weights");
  tags[2] = tag_of("activations");
  tags[3] = tag_of("caf\xc3\xa9 <b>");
}

tarn_trace *trace_of(tarn_pool *pool) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  ck_assert_ptr_nonnull(trace);
  return trace;
}

// --- what is compared ------------------------------------------------------

// A tag's number in the trace; 0 also where it has none of that name.
static uint32_t number_of(const tarn_trace *trace, tarn_tag tag) {
  for (uint32_t i = 1; tag != 0 && i < trace->tag_count; i++) {
    if (strcmp(trace->tags[i], tarn_pool_tag_name(tag)) == 0) return i;
  }
  return 0;
}

static bool is_out(const tarn_trace_block *block) {
  return block->died == TARN_TRACE_NEVER;
}

// Of what is out under |tag|, or under any.
static void sum_out(const tarn_trace *trace, const tarn_tag *tag, size_t *bytes,
                    size_t *count) {
  uint32_t number = tag != NULL ? number_of(trace, *tag) : 0;
  *bytes = *count = 0;
  if (tag != NULL && *tag != 0 && number == 0) return;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (!is_out(block) || (tag != NULL && block->tag != number)) continue;
    *bytes += block->size;
    ++*count;
  }
}

static void check_tags(tarn_pool *pool, const tarn_trace *trace) {
  for (size_t i = 0; i < TAGS; i++) {
    size_t bytes = 0;
    size_t count = 0;
    sum_out(trace, &tags[i], &bytes, &count);
    tarn_pool_tag_stats stats = tag_stats_of(pool, tags[i]);
    ck_assert_uint_eq(bytes, stats.live_bytes);
    ck_assert_uint_eq(count, stats.live_blocks);
  }
}

static bool has_memory(const tarn_trace *trace, const tarn_trace_block *block) {
  for (size_t i = 0; i < trace->segment_count; i++) {
    const tarn_trace_segment *s = &trace->segments[i];
    if (block->address >= s->address &&
        block->address - s->address + block->size <= s->size) {
      return true;
    }
  }
  return false;
}

void check_no_overlap(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->segment_count; i++) {
    const tarn_trace_segment *a = &trace->segments[i];
    require(a->size > 0);
    for (size_t j = 0; j < i; j++) {
      const tarn_trace_segment *b = &trace->segments[j];
      require(a->address + a->size <= b->address ||
              b->address + b->size <= a->address);
    }
  }
}

static void check_memory(const tarn_trace *trace, tarn_pool_stats stats) {
  size_t held = 0;
  for (size_t i = 0; i < trace->segment_count; i++)
    held += trace->segments[i].size;
  ck_assert_uint_eq(held, stats.reserved_bytes);
  check_no_overlap(trace);
  for (size_t i = 0; stats.asleep_bytes == 0 && i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (is_out(block)) require(has_memory(trace, block));
  }
}

static void check_blocks(tarn_pool *pool, const tarn_trace *trace) {
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (!is_out(block)) continue;
    const tarn__pool_piece *piece = tarn__front_at(pool, block->address);
    require(piece != NULL && piece->live);
    require(piece->requested == block->size);
  }
}

// All that does not need the events.
void check_state(tarn_pool *pool, const tarn_trace *trace) {
  size_t bytes = 0;
  size_t count = 0;
  tarn_pool_stats stats = stats_of(pool);
  sum_out(trace, NULL, &bytes, &count);
  ck_assert_uint_eq(bytes, stats.live_bytes);
  ck_assert_uint_eq(count, stats.live_blocks);
  ck_assert_uint_eq(trace->ignored_count, 0);
  ck_assert_uint_eq(trace->unknown_count, 0);
  check_tags(pool, trace);
  check_memory(trace, stats);
  check_blocks(pool, trace);
  ck_assert_uint_ge(trace->event_count, 1);
  const tarn_trace_event *last = &trace->events[trace->event_count - 1];
  ck_assert_int_eq(last->kind, TARN_TRACE_SNAPSHOT);
}

// --- events ----------------------------------------------------------------

static tarn_pool_event seen[MOST_EVENTS];

static tarn_trace_kind kind_of(const tarn_pool_event *e) {
  switch (e->kind) {
    case TARN_POOL_EVENT_ALLOC:
      return TARN_TRACE_ALLOC;
    case TARN_POOL_EVENT_FREE:
      return TARN_TRACE_FREE;
    case TARN_POOL_EVENT_GROW:
      return TARN_TRACE_SEGMENT_ALLOC;
    case TARN_POOL_EVENT_SHRINK:
      return TARN_TRACE_SEGMENT_FREE;
    case TARN_POOL_EVENT_MAP:
      return TARN_TRACE_SEGMENT_MAP;
    case TARN_POOL_EVENT_UNMAP:
      return TARN_TRACE_SEGMENT_UNMAP;
    case TARN_POOL_EVENT_FAIL:
      return TARN_TRACE_OOM;
    default:
      ck_abort_msg("event %d", (int)e->kind);
  }
}

static void check_event(const tarn_trace *trace, const tarn_trace_event *told,
                        const tarn_pool_event *e, tarn_trace_kind kind,
                        size_t size) {
  require(told->kind == kind);
  require(told->address == e->address);
  require(told->size == size);
  require(told->stream == e->stream);
  require(told->thread == e->thread);
  require(told->time_us == e->time_ns / 1000);
  require(told->stack == TARN_TRACE_NO_STACK);
  require(told->tag == number_of(trace, e->tag));
}

// The trace's events are the ring's, in their order, and the snapshot.
static void check_events(tarn_pool *pool, const tarn_trace *trace,
                         uint64_t from) {
  size_t count = 0;
  size_t at = 0;
  uint64_t next = 0;
  assert_ok(tarn_pool_events(pool, from, seen, MOST_EVENTS, &count, &next));
  ck_assert_uint_eq(trace->lost_count, next - count);
  for (size_t i = 0; i < count; i++) {
    const tarn_pool_event *e = &seen[i];
    const tarn_trace_event *told = &trace->events[at];
    if (e->kind == TARN_POOL_EVENT_SWITCH) continue;
    if (e->kind == TARN_POOL_EVENT_RESIZE) {
      if (e->size == e->size_before) continue;
      check_event(trace, told, e, TARN_TRACE_FREE, e->size_before);
      check_event(trace, told + 1, e, TARN_TRACE_ALLOC, e->size);
      at += 2;
    } else {
      check_event(trace, told, e, kind_of(e), e->size);
      at++;
    }
  }
  ck_assert_uint_eq(trace->event_count, at + 1);
}

// Where memory comes, or goes: +1 or -1 from there on.
typedef struct edge {
  uint64_t address;
  int change;
} edge;

static int by_address(const void *x, const void *y) {
  const edge *a = x;
  const edge *b = y;
  return (a->address > b->address) - (a->address < b->address);
}

static size_t add_edges(edge *edges, uint64_t address, uint64_t size,
                        int change) {
  edges[0] = (edge){address, change};
  edges[1] = (edge){address + size, -change};
  return 2;
}

// 1: memory came; -1: it went.
static int direction(tarn_trace_kind kind) {
  bool comes =
      kind == TARN_TRACE_SEGMENT_ALLOC || kind == TARN_TRACE_SEGMENT_MAP;
  bool goes =
      kind == TARN_TRACE_SEGMENT_FREE || kind == TARN_TRACE_SEGMENT_UNMAP;
  return (comes ? 1 : 0) - (goes ? 1 : 0);
}

void check_history(const tarn_trace *trace) {
  size_t count = 0;
  edge *edges = calloc(2 * (trace->event_count + trace->segment_count) + 1,
                       sizeof *edges);
  require(edges != NULL);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *e = &trace->events[i];
    int change = direction(e->kind);
    if (change == 0) continue;
    count += add_edges(&edges[count], e->address, e->size, change);
  }
  for (size_t i = 0; i < trace->segment_count; i++)
    count += add_edges(&edges[count], trace->segments[i].address,
                       trace->segments[i].size, -1);
  qsort(edges, count, sizeof *edges, by_address);
  for (size_t i = 0; i < count;) {
    uint64_t address = edges[i].address;
    int sum = 0;
    for (; i < count && edges[i].address == address; i++)
      sum += edges[i].change;
    require(sum == 0);
  }
  free(edges);
}

// --- files -----------------------------------------------------------------

typedef struct bytes {
  unsigned char *at;
  size_t size;
} bytes;

static tarn_status append(void *context, const void *from, size_t size) {
  bytes *b = context;
  b->at = realloc(b->at, b->size + size);
  require(b->at != NULL);
  memcpy(b->at + b->size, from, size);
  b->size += size;
  return TARN_OK;
}

// What is written in |format| is read as the same blocks and the same memory.
static void check_written(const tarn_trace *trace, tarn_trace_format format) {
  bytes b = {NULL, 0};
  tarn_trace *again = NULL;
  assert_ok(tarn_trace_write_to(trace, format, append, &b));
  assert_ok(tarn_trace_read_bytes(b.at, b.size, "written", NULL, &again));
  free(b.at);
  size_t bytes_out[2];
  size_t count_out[2];
  sum_out(trace, NULL, &bytes_out[0], &count_out[0]);
  sum_out(again, NULL, &bytes_out[1], &count_out[1]);
  ck_assert_uint_eq(bytes_out[0], bytes_out[1]);
  ck_assert_uint_eq(count_out[0], count_out[1]);
  ck_assert_uint_eq(again->request_count, trace->request_count);
  ck_assert_uint_eq(again->live_peak_bytes, trace->live_peak_bytes);
  // PyTorch's has one more for blocks that sleep.
  require(again->segment_count >= trace->segment_count);
  require(again->segment_count == trace->segment_count ||
          format == TARN_TRACE_FORMAT_PYTORCH);
  tarn_trace_destroy(again);
}

void check_all(tarn_pool *pool, uint64_t from) {
  tarn_trace *trace = trace_of(pool);
  check_state(pool, trace);
  check_events(pool, trace, from);
  ck_assert_str_eq(trace->format, "built");
  ck_assert_ptr_nonnull(strstr(trace->name, "pool of "));
  check_written(trace, TARN_TRACE_FORMAT_TARN);
  check_written(trace, TARN_TRACE_FORMAT_PYTORCH);
  tarn_trace_destroy(trace);
}
