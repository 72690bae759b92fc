// Spans against an array with one entry for each byte, and without host memory.
#include <string.h>

#include "base/hostmem.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"
#include "synced/timelines.h"

enum {
  SIZE = 61,      // bytes of the model's buffer
  TIMELINES = 3,  // 0 stands for none: transfers
  SIDES = 2,
  WAYS = 2,  // reads, writes
  USES = TIMELINES * SIDES * WAYS,
  OPEN = 6,       // accesses at once
  TRANSFER = 77,  // of all uses without a timeline
};

// --- the model -------------------------------------------------------------

// What is known of one byte. Compared as a whole, so without padding.
typedef struct byte {
  uint64_t valid;
  uint64_t uses[USES];  // positions; 0: none
  uint64_t readers;
  uint64_t writer;  // 1 + the access; 0: none
  uint64_t written;
} byte;

typedef struct range {
  size_t start, end;
  bool open, writes;
} range;

static struct {
  uint64_t state;
  tarn__synced_spans spans;
  tarn__synced_timelines timelines;
  tarn__synced_timeline timeline[TIMELINES];
  tarn_access accesses[OPEN];
  range open[OPEN];
  byte bytes[SIZE];
  size_t pins[SIZE + 1];
  uint64_t number;
} t;

static uint64_t next_random(uint64_t limit) {
  t.state ^= t.state << 13;
  t.state ^= t.state >> 7;
  t.state ^= t.state << 17;
  return (t.state >> 11) % limit;
}

static range random_range(void) {
  size_t a = next_random(SIZE + 1);
  size_t b = next_random(SIZE + 1);
  if (a == b) return (range){.end = SIZE};
  return (range){.start = a < b ? a : b, .end = a < b ? b : a};
}

static void set_up(uint64_t seed) {
  memset(&t, 0, sizeof t);
  t.state = seed * 0x9e3779b97f4a7c15 + 1;
  tarn__spans_init(&t.spans, SIZE);
  for (size_t i = 0; i < TIMELINES; i++) {
    t.timeline[i].list = &t.timelines;
    t.timeline[i].holds = 1;  // so that none goes
    t.timeline[i].issued = UINT64_MAX;
  }
}

static void tear_down(void) {
  tarn__spans_deinit(&t.spans);
  for (size_t i = 0; i < TIMELINES; i++)
    ck_assert_uint_eq(t.timeline[i].holds, 1);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static size_t slot_of(const tarn__synced_use *use) {
  size_t timeline =
      use->timeline != NULL ? (size_t)(use->timeline - t.timeline) : 0;
  return (timeline * SIDES + use->side) * WAYS + (use->writes ? 1 : 0);
}

static byte past_of(const tarn__synced_span *span) {
  byte past = {.valid = span->valid,
               .readers = span->readers,
               .written = span->written ? 1 : 0};
  if (span->writer != NULL) {
    past.writer = 1 + (uint64_t)(span->writer - t.accesses);
  }
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
    past.uses[slot_of(use)] = use->number;
  return past;
}

static bool starts_at(size_t at) {
  return at == 0 || t.pins[at] > 0 ||
         memcmp(&t.bytes[at - 1], &t.bytes[at], sizeof(byte)) != 0;
}

// As few spans as there can be, and each byte's past is the model's.
static void compare(void) {
  const char *wrong = tarn__spans_check(&t.spans);
  if (wrong != NULL) ck_abort_msg("%s", wrong);
  size_t count = 0;
  const tarn__synced_span *span = NULL;
  for (size_t i = 0; i < SIZE; i++) {
    if (starts_at(i)) {
      count++;
      span = tarn__spans_find(&t.spans, i);
      byte past = past_of(span);
      require(span->node.start == i);
      require(span->pins == (i == 0 ? 0 : t.pins[i]));
      require(memcmp(&past, &t.bytes[i], sizeof past) == 0);
    }
    require(tarn__spans_find(&t.spans, i) == span);
  }
  require(count == t.spans.map.count);
}

static void compare_timelines(void) {
  size_t uses = 0;
  size_t counted = 0;
  for (const tarn__synced_span *s = t.spans.first; s != NULL; s = s->next)
    for (const tarn__synced_use *use = s->uses; use != NULL; use = use->next)
      uses += use->timeline != NULL;
  for (size_t i = 0; i < TIMELINES; i++)
    counted += t.timeline[i].holds - 1;
  require(uses == counted);
}

// --- what may happen -------------------------------------------------------

// The first span of the range, and where it ends the range's last.
static tarn__synced_span *cut(range r, size_t uses,
                              tarn__synced_span **out_last) {
  tarn__synced_span *last = NULL;
  if (tarn__spans_reserve(&t.spans, r.start, r.end, uses) != TARN_OK) {
    return NULL;
  }
  tarn__synced_span *first = tarn__spans_cut(&t.spans, r.start, r.end);
  require(first->node.start == r.start);
  tarn__spans_each (s, &t.spans, r.start, r.end)
    last = s;
  require(last != NULL && last->end == r.end);
  if (out_last != NULL) *out_last = last;
  return first;
}

static bool may_open(range r, bool writes) {
  for (size_t i = r.start; i < r.end; i++) {
    if (t.bytes[i].writer != 0 || (writes && t.bytes[i].readers > 0))
      return false;
  }
  return true;
}

static void open_access(size_t index, range r, bool writes) {
  tarn__synced_span *last = NULL;
  tarn__synced_span *first = cut(r, 0, &last);
  if (first == NULL) return;
  tarn__span_pin(first, last);
  t.pins[r.start]++;
  t.pins[r.end]++;
  for (tarn__synced_span *s = first; s != last->next; s = s->next) {
    if (writes) {
      s->writer = &t.accesses[index];
    } else {
      s->readers++;
    }
  }
  for (size_t i = r.start; i < r.end; i++) {
    if (writes) t.bytes[i].writer = 1 + index;
    if (!writes) t.bytes[i].readers++;
  }
  t.open[index] = (range){r.start, r.end, true, writes};
}

// Needs no memory: the ends are pinned.
static void close_access(size_t index) {
  range r = t.open[index];
  tarn__synced_span *first = tarn__spans_find(&t.spans, r.start);
  tarn__synced_span *last = tarn__spans_find(&t.spans, r.end - 1);
  require(first->node.start == r.start && last->end == r.end);
  tarn__span_unpin(first, last);
  t.pins[r.start]--;
  t.pins[r.end]--;
  tarn__spans_each (s, &t.spans, r.start, r.end) {
    if (r.writes) {
      s->writer = NULL;
      s->written = true;
      s->valid = 1;
    } else {
      s->readers--;
    }
  }
  for (size_t i = r.start; i < r.end; i++) {
    if (r.writes) {
      t.bytes[i].writer = 0;
      t.bytes[i].written = t.bytes[i].valid = 1;
    } else {
      t.bytes[i].readers--;
    }
  }
  t.open[index].open = false;
  tarn__spans_join(&t.spans, r.start, r.end);
}

static void play_access(void) {
  size_t index = next_random(OPEN);
  range r = random_range();
  bool writes = next_random(2) == 0;
  if (t.open[index].open) {
    close_access(index);
  } else if (may_open(r, writes)) {
    open_access(index, r, writes);
  }
}

static void play_use(void) {
  range r = random_range();
  tarn__synced_use use = {.side = (uint32_t)next_random(SIDES),
                          .writes = next_random(2) == 0,
                          .number = TRANSFER};
  size_t timeline = next_random(TIMELINES);
  if (timeline > 0) {
    use.timeline = &t.timeline[timeline];
    use.number = ++t.number;
  }
  // Sometimes one that comes late, behind others that are further on.
  if (timeline > 0 && next_random(4) == 0) use.number = 1 + t.number / 2;
  tarn__synced_span *first = cut(r, 1, NULL);
  if (first == NULL) return;
  tarn__spans_each (s, &t.spans, r.start, r.end)
    tarn__span_use(&t.spans, s, use);
  for (size_t i = r.start; i < r.end; i++) {
    uint64_t *known = &t.bytes[i].uses[slot_of(&use)];
    if (*known < use.number) *known = use.number;
  }
  tarn__spans_join(&t.spans, r.start, r.end);
}

static bool is_of_slot(const tarn__synced_use *use, void *context) {
  return slot_of(use) == *(const size_t *)context;
}

static void play_forget(void) {
  size_t slot = next_random(USES);
  for (tarn__synced_span *s = t.spans.first; s != NULL; s = s->next)
    tarn__span_forget(&t.spans, s, is_of_slot, &slot);
  for (size_t i = 0; i < SIZE; i++)
    t.bytes[i].uses[slot] = 0;
  tarn__spans_join(&t.spans, 0, SIZE);
}

static void play_valid(void) {
  range r = random_range();
  uint64_t side = UINT64_C(1) << next_random(SIDES);
  tarn__synced_span *first = cut(r, 0, NULL);
  if (first == NULL) return;
  tarn__spans_each (s, &t.spans, r.start, r.end)
    if (s->written) s->valid ^= side;
  for (size_t i = r.start; i < r.end; i++)
    if (t.bytes[i].written) t.bytes[i].valid ^= side;
  tarn__spans_join(&t.spans, r.start, r.end);
}

static void play(size_t steps) {
  for (size_t i = 0; i < steps; i++) {
    uint64_t what = next_random(10);
    if (what < 5) play_access();
    if (what == 5 || what == 6) play_use();
    if (what == 7) play_forget();
    if (what > 7) play_valid();
    compare();
    compare_timelines();
  }
}

TEST(any_operations_agree_with_an_array_of_bytes) {
  size_t seen = 0;
  for (uint64_t seed = 1; seed <= EFFORT(60, 8); seed++) {
    set_up(seed);
    play(EFFORT(2000, 800));
    seen += t.spans.map.count;
    tear_down();
  }
  ck_assert_uint_gt(seen, EFFORT(60, 8));  // it did not stay whole
}

// --- no memory -------------------------------------------------------------

// Where it has none, an operation does nothing at all: the model says so.
static void play_without_memory(void *context) {
  set_up(*(const uint64_t *)context);
  play(EFFORT(120, 60));
  tarn__spans_deinit(&t.spans);
}

TEST(without_memory_nothing_changes) {
  size_t faults = 0;
  for (uint64_t seed = 1; seed <= 3; seed++)
    faults += faults_sweep(play_without_memory, &seed);
  ck_assert_uint_gt(faults, 100);
}

TEST(a_buffer_that_is_used_whole_takes_no_memory) {
  set_up(1);
  range whole = {.end = SIZE};
  faults_arm(1, FAULTS_FROM_NOW);
  open_access(0, whole, true);
  close_access(0);
  open_access(0, whole, false);
  open_access(1, whole, false);
  close_access(0);
  close_access(1);
  compare();
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(tarn_host_memory(), 0);
  tear_down();
}

TEST(what_was_reserved_is_there) {
  set_up(1);
  tarn__synced_use use = {
      .timeline = &t.timeline[1], .number = 1, .writes = true};
  open_access(0, (range){.start = 10, .end = 20}, false);
  assert_ok(tarn__spans_reserve(&t.spans, 5, 50, 2));
  faults_arm(1, FAULTS_FROM_NOW);
  tarn__synced_span *first = tarn__spans_cut(&t.spans, 5, 50);
  for (tarn__synced_span *s = first; s->node.start < 50; s = s->next) {
    tarn__span_use(&t.spans, s, use);
    tarn__span_use(&t.spans, s,
                   (tarn__synced_use){.timeline = &t.timeline[2], .number = 1});
  }
  ck_assert(!faults_disarm());
  ck_assert_ptr_null(tarn__spans_check(&t.spans));
  ck_assert_uint_eq(t.timeline[1].holds, 1 + 3);
  // A cut copies what is there, and that was reserved too.
  assert_ok(tarn__spans_reserve(&t.spans, 12, 13, 0));
  faults_arm(1, FAULTS_FROM_NOW);
  (void)tarn__spans_cut(&t.spans, 12, 13);
  ck_assert(!faults_disarm());
  ck_assert_uint_eq(t.timeline[1].holds, 1 + 5);
  tear_down();
}

TEST(more_uses_than_can_be_counted_are_refused) {
  set_up(1);
  open_access(0, (range){.start = 10, .end = 20}, false);
  assert_status(tarn__spans_reserve(&t.spans, 0, SIZE, SIZE_MAX / 2),
                TARN_E_NOMEM);
  assert_error_says("uses");
  compare();
  close_access(0);
  tear_down();
}

// --- the walker ------------------------------------------------------------

// Two readers side by side, and a use.
static void set_scene(void) {
  set_up(1);
  open_access(0, (range){.start = 10, .end = 20}, false);
  open_access(1, (range){.start = 20, .end = 30}, false);
  tarn__synced_use use = {.timeline = &t.timeline[1], .number = 1};
  assert_ok(tarn__spans_reserve(&t.spans, 20, 30, 2));
  tarn__span_use(&t.spans, tarn__spans_find(&t.spans, 20), use);
  use.side = 1;
  tarn__span_use(&t.spans, tarn__spans_find(&t.spans, 20), use);
  ck_assert_ptr_null(tarn__spans_check(&t.spans));
}

static tarn__synced_span *at(size_t offset) {
  return tarn__spans_find(&t.spans, offset);
}

static void assert_wrong(const char *part) {
  const char *wrong = tarn__spans_check(&t.spans);
  ck_assert_msg(wrong != NULL && strstr(wrong, part) != NULL,
                "'%s' does not say '%s'", wrong != NULL ? wrong : "(nothing)",
                part);
}

// Harms one thing, is told of it, and puts it right again.
#define HARM(thing, value, part)          \
  do {                                    \
    __typeof__(thing) *harmed = &(thing); \
    __typeof__(thing) kept = *harmed;     \
    *harmed = (value);                    \
    assert_wrong(part);                   \
    *harmed = kept;                       \
  } while (0)

TEST(the_walker_sees_what_is_wrong) {
  set_scene();
  tarn__synced_span *span = at(20);
  HARM(span->node.start, 21, "gap");
  HARM(span->end, 20, "empty");
  HARM(at(SIZE - 1)->end, SIZE + 1, "end at the end");
  HARM(span->prev, at(0), "");
  HARM(at(10)->next, at(30), "");
  HARM(at(0)->node.priority, 0, "heap");
  HARM(at(10)->pins, 0, "no pin");
  HARM(at(0)->pins, 1, "at the beginning");
  HARM(span->writer, &t.accesses[0], "read and written");
  HARM(span->uses->side, span->uses->next->side, "twice");
  HARM(t.timeline[1].issued, 0, "position");
  HARM(t.spans.map.count, 2, "miscounted");
  HARM(t.spans.spare_spans.count, 999, "spare spans");
  HARM(t.spans.spare_uses.count, 999, "spare uses");
  HARM(t.spans.first, span, "first");
  ck_assert_ptr_null(tarn__spans_check(&t.spans));
  tear_down();
}

// --- very many spans -------------------------------------------------------

enum { MANY = 20000, SOME = 2000 };

static void cut_all(tarn__synced_spans *spans, size_t count) {
  for (size_t i = 0; i < count; i++) {
    require(tarn__spans_reserve(spans, i, i + 1, 1) == TARN_OK);
    tarn__synced_span *span = tarn__spans_cut(spans, i, i + 1);
    span->written = true;
    span->valid = i % 2;
    tarn__span_use(spans, span, (tarn__synced_use){.number = i + 1});
  }
}

static bool is_any(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->number > 0;
}

static void join_all(tarn__synced_spans *spans) {
  for (tarn__synced_span *s = spans->first; s != NULL; s = s->next) {
    s->valid = 1;
    tarn__span_forget(spans, s, is_any, NULL);
  }
  tarn__spans_join(spans, 0, spans->size);
}

static void work_for_a_while(tarn__synced_spans *spans) {
  for (int i = 0; i < 3 * MANY; i++)
    require(tarn__spans_reserve(spans, 1, 2, 1) == TARN_OK);
}

TEST(who_cuts_and_joins_in_turns_takes_no_memory) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, SOME);
  cut_all(&spans, SOME);
  join_all(&spans);
  faults_arm(1, FAULTS_FROM_NOW);
  for (int i = 0; i < 3; i++) {
    cut_all(&spans, SOME);
    join_all(&spans);
  }
  ck_assert(!faults_disarm());
  tarn__spans_deinit(&spans);
}

TEST(memory_shrinks_with_the_ranges) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, MANY);
  cut_all(&spans, MANY);
  size_t held = tarn_host_memory();
  ck_assert_uint_gt(held, (MANY - 1) * sizeof(tarn__synced_span));
  join_all(&spans);
  ck_assert_uint_eq(spans.map.count, 1);
  ck_assert_ptr_null(tarn__spans_check(&spans));
  ck_assert_uint_lt(tarn_host_memory(), held / 2);
  work_for_a_while(&spans);
  ck_assert_uint_lt(tarn_host_memory(), 10000);
  // A large reservation that was not used does not stay for ever either.
  assert_ok(tarn__spans_reserve(&spans, 0, MANY, 1000));
  work_for_a_while(&spans);
  ck_assert_uint_lt(tarn_host_memory(), 10000);
  tarn__spans_deinit(&spans);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(a_buffer_of_no_bytes_has_no_spans) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, 0);
  ck_assert_ptr_null(spans.first);
  ck_assert_uint_eq(spans.map.count, 0);
  ck_assert_ptr_null(tarn__spans_check(&spans));
  assert_ok(tarn__spans_reserve(&spans, 0, 0, 5));
  tarn__spans_join(&spans, 0, 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
  tarn__spans_deinit(&spans);
}

int main(void) {
  faults_install();
  return run_tests();
}
