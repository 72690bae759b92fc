// Frames of the tool: traces copied under other names, and the names of code.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rename.h"
#include "support/run.h"
#include "support/tool_run.h"
#include "symbols.h"
#include "tarn/trace_build.h"

// --- copies ----------------------------------------------------------------

static uint32_t make_stack(tarn_trace_builder *builder) {
  uint32_t stack = 0;
  const tarn_trace_frame frames[] = {
      {.file = "a.so", .function = "+0x10"},
      {.file = "main.c", .function = "main", .line = 7},
  };
  assert_ok(tarn_trace_builder_stack(builder, frames, 2, &stack));
  return stack;
}

static void add_event(tarn_trace_builder *builder, tarn_trace_kind kind,
                      uint64_t address, uint32_t stack, uint32_t tag) {
  const tarn_trace_event event = {.kind = kind,
                                  .address = address,
                                  .size = 100,
                                  .time_us = address,
                                  .stream = 2,
                                  .thread = 3,
                                  .stack = stack,
                                  .tag = tag};
  assert_ok(tarn_trace_builder_event(builder, &event));
}

// A baseline, a life, a birth, a refused request; a segment; losses.
static tarn_trace *make_trace(void) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  uint32_t tag = 0;
  assert_ok(tarn_trace_builder_create("made", &builder));
  uint32_t stack = make_stack(builder);
  assert_ok(tarn_trace_builder_tag(builder, "weights", &tag));
  const tarn_trace_block old = {
      .size = 64, .address = 4096, .stack = stack, .tag = tag};
  assert_ok(tarn_trace_builder_old(builder, &old));
  add_event(builder, TARN_TRACE_ALLOC, 8192, stack, tag);
  add_event(builder, TARN_TRACE_ALLOC, 12288, TARN_TRACE_NO_STACK, 0);
  add_event(builder, TARN_TRACE_FREE, 8192, TARN_TRACE_NO_STACK, 0);
  add_event(builder, TARN_TRACE_OOM, 0, stack, tag);
  assert_ok(tarn_trace_builder_segment(
      builder, &(tarn_trace_segment){.address = 4096, .size = 65536}));
  tarn_trace_builder_lost(builder, 5);
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  return trace;
}

// "+0x10" was inlined; all else stays.
static size_t rename_offset(void *context, const tarn_trace_frame *frame,
                            tarn_trace_frame out[RENAME_MOST]) {
  ++*(size_t *)context;
  if (frame->function[0] != '+') return 0;
  out[0] = (tarn_trace_frame){"a.c", "inner", 1};
  out[1] = (tarn_trace_frame){"a.c", "outer", 2};
  return 2;
}

static const tarn_trace_frame *frame_at(const tarn_trace *trace, uint32_t stack,
                                        uint32_t index) {
  ck_assert_uint_lt(stack, trace->stack_count);
  ck_assert_uint_lt(index, trace->stacks[stack].count);
  return &trace->frames[trace->frame_indices[trace->stacks[stack].first +
                                             index]];
}

static void assert_renamed(const tarn_trace *trace, uint32_t stack) {
  ck_assert_uint_eq(trace->stacks[stack].count, 3);
  ck_assert_str_eq(frame_at(trace, stack, 0)->function, "inner");
  ck_assert_uint_eq(frame_at(trace, stack, 0)->line, 1);
  ck_assert_str_eq(frame_at(trace, stack, 1)->function, "outer");
  ck_assert_str_eq(frame_at(trace, stack, 1)->file, "a.c");
  ck_assert_str_eq(frame_at(trace, stack, 2)->function, "main");
  ck_assert_uint_eq(frame_at(trace, stack, 2)->line, 7);
}

static void assert_same_events(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->event_count, b->event_count);
  for (size_t i = 0; i < a->event_count; i++) {
    const tarn_trace_event *x = &a->events[i], *y = &b->events[i];
    ck_assert_int_eq(x->kind, y->kind);
    ck_assert_uint_eq(x->block, y->block);
    ck_assert_uint_eq(x->address, y->address);
    ck_assert_uint_eq(x->size, y->size);
    ck_assert_uint_eq(x->time_us, y->time_us);
    ck_assert_uint_eq(x->stream, y->stream);
    ck_assert_uint_eq(x->thread, y->thread);
    ck_assert_str_eq(a->tags[x->tag], b->tags[y->tag]);
    ck_assert_int_eq(x->stack == TARN_TRACE_NO_STACK,
                     y->stack == TARN_TRACE_NO_STACK);
  }
}

TEST(copy_has_other_frames_and_all_else) {
  tarn_trace *trace = make_trace(), *copy = NULL;
  size_t calls = 0;
  trace->unknown_count = 9;
  trace->unfinished = true;
  assert_ok(rename_trace(trace, "copy", rename_offset, &calls, &copy));
  ck_assert_uint_eq(calls, trace->frame_count);
  ck_assert_str_eq(copy->name, "copy");
  assert_same_events(trace, copy);
  assert_renamed(copy, copy->events[0].stack);
  assert_renamed(copy, copy->events[3].stack);
  ck_assert_uint_eq(copy->baseline_count, 1);
  ck_assert_uint_eq(copy->blocks[0].size, 64);
  ck_assert_str_eq(copy->tags[copy->blocks[0].tag], "weights");
  assert_renamed(copy, copy->blocks[0].stack);
  ck_assert_uint_eq(copy->live_peak_bytes, trace->live_peak_bytes);
  ck_assert_uint_eq(copy->segment_count, 1);
  ck_assert_uint_eq(copy->lost_count, 5);
  ck_assert_uint_eq(copy->unknown_count, 9);
  ck_assert(copy->unfinished);
  tarn_trace_destroy(copy);
  tarn_trace_destroy(trace);
}

// Blocks without addresses cannot be told apart.
TEST(copy_of_a_workload_fails) {
  tarn_trace *trace = NULL, *copy = NULL;
  size_t calls = 0;
  assert_ok(tarn_trace_make("@kv-decode", &trace));
  assert_status(rename_trace(trace, "copy", rename_offset, &calls, &copy),
                TARN_E_CORRUPT);
  ck_assert_ptr_null(copy);
  tarn_trace_destroy(trace);
}

// --- symbols ---------------------------------------------------------------

TEST(what_has_no_symbols_has_no_names) {
  tarn_trace_frame places[SYMBOLS_MOST];
  tool_files_begin();
  const char *pipe = tool_file("pipe");
  const char *text = tool_write_file(tool_file("text"), "\177ELF and no more");
  ck_assert_int_eq(mkfifo(pipe, 0600), 0);
  symbols *table = symbols_open();
  const char *const paths[] = {"", "/", "/nowhere", text, pipe, text};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    ck_assert_uint_eq(symbols_find(table, paths[i], 64, places), 0);
  symbols_close(table);
  tool_files_end();
}

#ifdef TARN_HAS_LIBDW

static int first_base(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  *(uintptr_t *)context = info->dlpi_addr;
  return 1;  // the first is the program
}

static uintptr_t own_base(void) {
  uintptr_t base = 0;
  dl_iterate_phdr(first_base, &base);
  return base;
}

TEST(own_function_has_its_name) {
  tarn_trace_frame places[SYMBOLS_MOST];
  char self[4096] = "";
  ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  symbols *table = symbols_open();
  uintptr_t address = (uintptr_t)first_base - own_base();
  ck_assert_uint_eq(symbols_find(table, self, 0, places), 0);
  // Twice: the second time the module is known.
  for (int i = 0; i < 2; i++) {
    ck_assert_uint_eq(symbols_find(table, self, address + 1, places), 1);
    ck_assert_str_eq(places[0].function, "first_base");
  }
  ck_assert_uint_eq(symbols_find(table, self, UINT64_MAX, places), 0);
  symbols_close(table);
}

// A library of the system, for which there is a table of symbols at least.
TEST(exported_function_has_its_name) {
  tarn_trace_frame places[SYMBOLS_MOST];
  void *function = dlsym(RTLD_DEFAULT, "dwfl_begin");
  Dl_info info;
  ck_assert_ptr_nonnull(function);
  ck_assert_int_ne(dladdr(function, &info), 0);
  uint64_t offset = (uintptr_t)function - (uintptr_t)info.dli_fbase;
  symbols *table = symbols_open();
  size_t count = symbols_find(table, info.dli_fname, offset + 1, places);
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(places[0].function, "dwfl_begin");
  ck_assert_str_eq(places[0].file, info.dli_fname);
  ck_assert_uint_eq(places[0].line, 0);
  symbols_close(table);
}

TEST(servers_are_not_asked) {
  setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9/", 1);
  symbols *table = symbols_open();
  ck_assert_ptr_null(getenv("DEBUGINFOD_URLS"));
  symbols_close(table);
}

#else

TEST(nothing_is_read_without_libdw) {
  ck_assert(!symbols_are_read());
  ck_assert_ptr_null(symbols_open());
}

#endif
