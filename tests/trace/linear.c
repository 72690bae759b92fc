// Files that share everything: many records that name one long text, one long
// list or one allocator by a few bytes each. Reading one, and writing the trace
// that comes of it, costs in proportion to the file. What is counted is work,
// not time: the bytes that are copied, compared, searched and hashed, and the
// memory that is asked for. A file of twice the size costs twice as much.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "growing.h"
#include "support/log_file.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "tarn/plan_csv.h"
#include "tarn/safetensors.h"
#include "tarn/trace.h"
#include "tarn/trace_write.h"

// --- work ------------------------------------------------------------------

static size_t work;

// NOLINTBEGIN(bugprone-reserved-identifier)
void *__real_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__real_memchr(const void *bytes, int byte, size_t size);
void *__wrap_memchr(const void *bytes, int byte, size_t size);
int __real_memcmp(const void *a, const void *b, size_t size);
int __wrap_memcmp(const void *a, const void *b, size_t size);
size_t __real_strlen(const char *text);
size_t __wrap_strlen(const char *text);
tarn_status __real_tarn__intern_put(tarn__intern *set, tarn__budget *budget,
                                    const void *bytes, size_t size,
                                    uint32_t *out_number);
tarn_status __wrap_tarn__intern_put(tarn__intern *set, tarn__budget *budget,
                                    const void *bytes, size_t size,
                                    uint32_t *out_number);
// NOLINTEND(bugprone-reserved-identifier)

void *__wrap_memcpy(void *to, const void *from, size_t size) {
  work += 1 + size;
  return __real_memcpy(to, from, size);
}

void *__wrap_memchr(const void *bytes, int byte, size_t size) {
  void *found = __real_memchr(bytes, byte, size);
  size_t passed = (size_t)((const char *)found - (const char *)bytes);
  work += 1 + (found != NULL ? passed : size);
  return found;
}

int __wrap_memcmp(const void *a, const void *b, size_t size) {
  work += 1 + size;
  return __real_memcmp(a, b, size);
}

size_t __wrap_strlen(const char *text) {
  size_t length = __real_strlen(text);
  work += 1 + length;
  return length;
}

tarn_status __wrap_tarn__intern_put(tarn__intern *set, tarn__budget *budget,
                                    const void *bytes, size_t size,
                                    uint32_t *out_number) {
  work += 1 + size;
  return __real_tarn__intern_put(set, budget, bytes, size, out_number);
}

static void *allocate(void *context, size_t size, size_t align) {
  (void)context;
  work += size;
  void *ptr = NULL;
  return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void deallocate(void *context, void *ptr, size_t size, size_t align) {
  (void)context, (void)size, (void)align;
  free(ptr);
}

static void count_memory(void) {
  static const tarn_host_allocator allocator = {.struct_size = sizeof allocator,
                                                .allocate = allocate,
                                                .deallocate = deallocate};
  assert_ok(tarn_host_allocator_set(&allocator));
}

// --- files -----------------------------------------------------------------

// What a file shares grows with it: |count| references to |count| bytes.
typedef struct file {
  unsigned char *bytes;
  size_t size;
} file;

static char *long_text(size_t size) {
  char *text = malloc(size + 1);
  require(text != NULL);
  memset(text, 'x', size);
  text[size] = '\0';
  return text;
}

// The |i|-th block, up to its frames.
static void pickle_alloc_begins(pickle_writer *w, size_t i) {
  pickle_open_dict(w);
  pickle_text(w, "action");
  pickle_text(w, "alloc");
  pickle_text(w, "addr");
  pickle_int(w, (i + 1) << 12);
  pickle_text(w, "size");
  pickle_int(w, 512);
  pickle_text(w, "frames");
}

static void pickle_event_begins(pickle_writer *w) {
  pickle_open_dict(w);
  pickle_text(w, "action");
  pickle_text(w, "oom");
  pickle_text(w, "frames");
}

// A snapshot whose slot 0 is a text of |count| bytes.
static void pickle_with_text(pickle_writer *w, size_t count) {
  char *text = long_text(count);
  pickle_begin(w, 4);
  pickle_text(w, text);
  pickle_put(w, 0);
  pickle_op(w, '0');
  pickle_raw(w, "}(", 2);
  pickle_text(w, "device_traces");
  pickle_open_list(w);
  pickle_open_list(w);
  free(text);
}

static file pickled(pickle_writer *w) {
  pickle_finish(w);
  return (file){w->bytes, w->size};
}

// One frame of the file |name|, whose function is in slot 0; slot 1 has it from
// then on.
static void put_shared_frame(pickle_writer *w, const char *name, bool first) {
  if (!first) {
    pickle_get(w, 1);
    return;
  }
  pickle_open_dict(w);
  pickle_text(w, "filename");
  pickle_text(w, name);
  pickle_text(w, "name");
  pickle_get(w, 0);
  pickle_text(w, "line");
  pickle_int(w, 0);
  pickle_close_dict(w);
  pickle_put(w, 1);
}

static file lists_of_one_frame(size_t count, const char *name) {
  pickle_writer w = {0};
  pickle_with_text(&w, count);
  for (size_t i = 0; i < count / 8; i++) {
    pickle_event_begins(&w);
    pickle_open_list(&w);
    put_shared_frame(&w, name, i == 0);
    pickle_close_list(&w);
    pickle_close_dict(&w);
  }
  return pickled(&w);
}

static file lists_with_one_tag(size_t count) {
  return lists_of_one_frame(count, "tag");
}

static file lists_with_one_name(size_t count) {
  return lists_of_one_frame(count, "net.py");
}

// Each list has a frame of its own in front of the tag, so that no two are
// equal.
static file stacks_with_one_tag(size_t count) {
  pickle_writer w = {0};
  pickle_with_text(&w, count);
  for (size_t i = 0; i < count / 8; i++) {
    pickle_event_begins(&w);
    pickle_open_list(&w);
    pickle_frame(&w, "net.cc", i, "f");
    put_shared_frame(&w, "tag", i == 0);
    pickle_close_list(&w);
    pickle_close_dict(&w);
  }
  return pickled(&w);
}

static file frames_with_one_text(size_t count) {
  pickle_writer w = {0};
  pickle_with_text(&w, count);
  for (size_t i = 0; i < count / 8; i++) {
    pickle_event_begins(&w);
    pickle_open_list(&w);
    pickle_open_dict(&w);
    pickle_text(&w, "filename");
    pickle_get(&w, 0);
    pickle_text(&w, "line");
    pickle_int(&w, i);
    pickle_close_dict(&w);
    pickle_close_list(&w);
    pickle_close_dict(&w);
  }
  return pickled(&w);
}

// A list of |count| references to one frame, and |count| blocks that have it.
static file blocks_with_one_stack(size_t count) {
  pickle_writer w = {0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  for (size_t i = 0; i < count; i++) {
    pickle_alloc_begins(&w, i);
    if (i == 0) {
      pickle_open_list(&w);
      pickle_frame(&w, "net.cc", 1, "f");
      pickle_put(&w, 0);
      for (size_t j = 1; j < count; j++)
        pickle_get(&w, 0);
      pickle_close_list(&w);
      pickle_put(&w, 1);
    } else {
      pickle_get(&w, 1);
    }
    pickle_close_dict(&w);
  }
  return pickled(&w);
}

// Blocks whose one stack is a tag alone.
static file blocks_with_one_tag(size_t count) {
  pickle_writer w = {0};
  pickle_with_text(&w, count);
  for (size_t i = 0; i < count / 8; i++) {
    pickle_alloc_begins(&w, i);
    pickle_open_list(&w);
    put_shared_frame(&w, "tag", i == 0);
    pickle_close_list(&w);
    pickle_close_dict(&w);
  }
  return pickled(&w);
}

// All of a file of Tarn's own that can name one text: frames, tags, modules,
// and events by their tag and stack.
static file log_of_one_text(size_t count) {
  log_file w;
  char *text = long_text(TARN__LOG_MOST_TEXT);
  log_begin(&w);
  log_page(&w, 1);
  log_text(&w, 1, text);
  for (size_t i = 1; i <= count / 4; i++) {
    LOG_DEFINE(&w, TARN__LOG_FRAME, i, 1, 1, i);
    LOG_DEFINE(&w, TARN__LOG_TAG, 1);
    LOG_DEFINE(&w, TARN__LOG_MODULE, i, 1, i << 12, 4096, 0, 0);
    LOG_DEFINE(&w, TARN__LOG_STACK, i, 2, i, i);
    LOG_DEFINE(&w, TARN__LOG_RAW_STACK, count + i, 1, (i << 12) + 8);
    log_put(&w, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                        .number = i,
                                        .address = i << 12,
                                        .size = 512,
                                        .stack = i % 2 == 0 ? i : count + i,
                                        .tag = 1});
  }
  free(text);
  return (file){w.bytes, w.size};
}

// Births and deaths of four and three bytes.
static file shortest_events(size_t count) {
  log_file w;
  log_begin(&w);
  log_page(&w, 1);
  for (size_t i = 0; i < count; i++) {
    log_put(&w, (tarn__trace_log_event){
                    .kind = i % 2 ? TARN__LOG_FREE : TARN__LOG_ALLOC,
                    .number = i,
                    .address = 64,
                    .size = 1});
  }
  return (file){w.bytes, w.size};
}

static file lined(const growing *l) {
  return (file){(unsigned char *)l->bytes, l->size};
}

static file rmm_of_one_address(size_t count) {
  growing l = {0};
  grow(&l, "Thread,Time,Action,Pointer,Size,Stream\n");
  for (size_t i = 0; i < count / 8; i++)
    grow(&l, "1,00:00:00.1,%s,0x1000,1,0x0\n", i % 2 ? "free" : "allocate");
  return lined(&l);
}

// One allocator with a long name, whose requests have none.
static file umpire_of_one_name(size_t count) {
  growing l = {0};
  char *name = long_text(count);
  grow(&l,
       "{\"name\":\"make_allocator\",\"string_args\":{\"allocator_ref\":"
       "\"0x1\"},\"tags\":{\"allocator_name\":\"\\u0041%s\"}}\n",
       name);
  for (size_t i = 0; i < count / 8; i++) {
    grow(&l,
         "{\"name\":\"allocate\",\"numeric_args\":{\"size\":8},\"string_args\":"
         "{\"allocator_ref\":\"0x1\",\"pointer\":\"0x%zx\"}}\n",
         (i + 1) << 12);
  }
  free(name);
  return lined(&l);
}

// One buffer with a long id, in whose place all others may stand, which write
// it out: that is the only way to name it.
static file plan_of_gaps(size_t count) {
  growing l = {0};
  grow(&l, "id,lower,upper,size,gaps,in_place_of\n");
  grow(&l, "a,0,%zu,1,", 4 * count + 4);
  for (size_t i = 1; i < count; i++)
    grow(&l, "%zu-%zu ", 4 * i, 4 * i + 1);
  grow(&l, ",\n");
  for (size_t i = 0; i < count; i++)
    grow(&l, "%zu,%zu,%zu,1,,a\n", i, 4 * count + 3, 4 * count + 9);
  return lined(&l);
}

static file tensors_of_one_kind(size_t count) {
  growing l = {0};
  char *text = long_text(count);
  uint64_t length = 0;
  grow(&l, "%.8s", "12345678");
  grow(&l, "{\"__metadata__\":{\"%s\":\"%s\"}", text, text);
  for (size_t i = 0; i < count / 8; i++) {
    grow(&l,
         ",\"%zu\":{\"dtype\":\"F32\",\"shape\":[0,1,1],"
         "\"data_offsets\":[0,0]}",
         i);
  }
  grow(&l, "}");
  length = l.size - sizeof length;
  memcpy(l.bytes, &length, sizeof length);
  free(text);
  return lined(&l);
}

// --- readers and writers ---------------------------------------------------

static void read_trace(const file *from) {
  tarn_trace *trace = NULL;
  assert_ok(
      tarn_trace_read_bytes(from->bytes, from->size, "shared", NULL, &trace));
  require(trace->event_count != 0);
  tarn_trace_destroy(trace);
}

static tarn_status count_piece(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return TARN_OK;
}

// Returns the bytes that were written, which are work as well.
static size_t write_trace(const file *from, tarn_trace_format format) {
  size_t written = 0;
  tarn_trace *trace = NULL;
  assert_ok(
      tarn_trace_read_bytes(from->bytes, from->size, "shared", NULL, &trace));
  work = 0;
  assert_ok(tarn_trace_write_to(trace, format, count_piece, &written));
  work += written;
  tarn_trace_destroy(trace);
  return written;
}

static void write_tarn(const file *from) {
  (void)write_trace(from, TARN_TRACE_FORMAT_TARN);
}

static void write_pytorch(const file *from) {
  (void)write_trace(from, TARN_TRACE_FORMAT_PYTORCH);
}

// What is written stays within 100 x the file, even of what is made to grow.
static void write_perfetto(const file *from) {
  size_t written = write_trace(from, TARN_TRACE_FORMAT_PERFETTO);
  ck_assert_uint_le(written, 100 * from->size);
}

static void read_plan(const file *from) {
  tarn_plan_table *table = NULL;
  assert_ok(tarn_plan_table_read_bytes(from->bytes, from->size, "shared", NULL,
                                       &table));
  tarn_plan_table_destroy(table);
}

static void read_tensors(const file *from) {
  tarn_safetensors *tensors = NULL;
  assert_ok(
      tarn_safetensors_open_bytes(from->bytes, from->size, "shared", &tensors));
  tarn_safetensors_close(tensors);
}

typedef struct subject {
  const char *name;
  file (*make)(size_t count);
  void (*take)(const file *from);
} subject;

static const subject subjects[] = {
    {"read: lists with one tag", lists_with_one_tag, read_trace},
    {"read: stacks with one tag", stacks_with_one_tag, read_trace},
    {"read: lists with one name", lists_with_one_name, read_trace},
    {"read: frames with one text", frames_with_one_text, read_trace},
    {"read: blocks with one stack", blocks_with_one_stack, read_trace},
    {"read: log of one text", log_of_one_text, read_trace},
    {"read: RMM's log of one address", rmm_of_one_address, read_trace},
    {"read: Umpire's log of one name", umpire_of_one_name, read_trace},
    {"read: plan of gaps and pairs", plan_of_gaps, read_plan},
    {"read: tensors of one kind", tensors_of_one_kind, read_tensors},
    {"tarn: lists with one tag", lists_with_one_tag, write_tarn},
    {"tarn: stacks with one tag", stacks_with_one_tag, write_tarn},
    {"tarn: lists with one name", lists_with_one_name, write_tarn},
    {"tarn: frames with one text", frames_with_one_text, write_tarn},
    {"tarn: blocks with one stack", blocks_with_one_stack, write_tarn},
    {"tarn: log of one text", log_of_one_text, write_tarn},
    {"tarn: Umpire's log of one name", umpire_of_one_name, write_tarn},
    {"pytorch: lists with one tag", lists_with_one_tag, write_pytorch},
    {"pytorch: stacks with one tag", stacks_with_one_tag, write_pytorch},
    {"pytorch: lists with one name", lists_with_one_name, write_pytorch},
    {"pytorch: frames with one text", frames_with_one_text, write_pytorch},
    {"pytorch: blocks with one stack", blocks_with_one_stack, write_pytorch},
    {"pytorch: log of one text", log_of_one_text, write_pytorch},
    {"pytorch: Umpire's log of one name", umpire_of_one_name, write_pytorch},
    {"perfetto: blocks with one tag", blocks_with_one_tag, write_perfetto},
    {"perfetto: stacks with one tag", stacks_with_one_tag, write_perfetto},
    {"perfetto: frames with one text", frames_with_one_text, write_perfetto},
    {"perfetto: blocks with one stack", blocks_with_one_stack, write_perfetto},
    {"perfetto: log of one text", log_of_one_text, write_perfetto},
    {"perfetto: the shortest events", shortest_events, write_perfetto},
    {"perfetto: RMM's log of one address", rmm_of_one_address, write_perfetto},
    {"perfetto: Umpire's log of one name", umpire_of_one_name, write_perfetto},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

// What is taken of a file of |count|, by its bytes.
static double measure(const subject *of, size_t count) {
  file made = of->make(count);
  work = 0;
  of->take(&made);
  double by_byte = (double)work / (double)made.size;
  free(made.bytes);
  return by_byte;
}

// MOST: the work of a byte of the file. JSON has several times as many bytes as
// what it is made of, and each is copied.
TEST_LOOP(twice_the_file_is_twice_the_work, SUBJECTS) {
  enum { MOST = 200 };
  const size_t count = 1 << 14;
  const subject *of = &subjects[_i];
  double once = measure(of, count);
  double twice = measure(of, 2 * count);
  printf("%-36s %6.1f %6.1f a byte\n", of->name, once, twice);
  ck_assert_double_le(twice, 1.3 * once);
  ck_assert_double_le(twice, MOST);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

int main(void) {
  count_memory();
  return run_tests();
}
