// Files of Tarn's own format that are made to cost much, and one that grows
// while it is read: every answer comes within the memory that the file's size
// allows, and soon.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "log_kit.h"
#include "support/effort.h"
#include "support/trace_written.h"

// What costs more than n log n would take minutes; this takes below a second,
// and some seconds under a sanitizer.
static void read_soon(void) {
  enum { SECONDS = 20 };
  clock_t before = clock();
  assert_ok(read_exactly("hostile", file.bytes, file.size, NULL, &trace));
  ck_assert_int_lt(clock() - before, SECONDS * CLOCKS_PER_SEC);
}

// Every page has an event for each turn: the merge changes pages each time.
TEST_LOOP(events_that_alternate_between_all_pages_are_merged,
          THREADS_ARE_WATCHED ? 0 : 1) {
  enum { PAGES = 2000, EVENTS = 100 };
  for (uint64_t page = 0; page < PAGES; page++) {
    log_page(&file, (uint32_t)page);
    for (uint64_t i = 0; i < EVENTS; i++) {
      uint64_t number = i * PAGES + (page * 1237 + i * 911) % PAGES;
      log_event(&file, TARN__LOG_ALLOC, number, (number + 1) * 64, 64);
    }
  }
  read_soon();
  ck_assert_uint_eq(trace->event_count, PAGES * EVENTS);
  for (size_t i = 0; i < trace->event_count; i++)
    require(trace->events[i].address == (i + 1) * 64);
}

// Mappings one behind the other, each cut in the middle: a list, not a tree,
// were it not for the priorities.
TEST_LOOP(mappings_in_order_do_not_make_a_list, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { MAPPINGS = 50000 };
  log_page(&file, 1);
  for (uint64_t i = 0; i < MAPPINGS; i++)
    log_event(&file, TARN__LOG_MAP, i, (i + 1) << 16, 1 << 16);
  for (uint64_t i = 0; i < MAPPINGS; i++) {
    log_event(&file, TARN__LOG_UNMAP, MAPPINGS + i, ((i + 1) << 16) + 4096,
              4096);
  }
  log_event(&file, TARN__LOG_UNMAP, (uint64_t)2 * MAPPINGS, 0, UINT64_MAX);
  read_soon();
  ck_assert_uint_eq(trace->event_count, 6 * MAPPINGS);
  ck_assert_uint_eq(trace->request_count, 6 * MAPPINGS);
  for (size_t i = 0; i < trace->block_count; i++)
    require(trace->blocks[i].died != TARN_TRACE_NEVER);
}

// All modules at one place, each stack at a moment of its own.
TEST_LOOP(modules_over_modules_do_not_multiply, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { MODULES = 50000, STACKS = 5000, FRAMES = 32 };
  log_page(&file, 1);
  log_text(&file, 1, "a.so");
  for (uint64_t i = 0; i < MODULES; i++) {
    LOG_DEFINE(&file, TARN__LOG_MODULE, i, 1, 4096 + i, 1 << 20, i,
               MODULES - i);
  }
  for (uint64_t i = 0; i < STACKS; i++) {
    uint64_t numbers[2 + FRAMES] = {i + 1, FRAMES, 1 << 16};
    for (size_t j = 1; j < FRAMES; j++)
      numbers[2 + j] = (i + j) % 40 << 6;
    log_define(&file, TARN__LOG_RAW_STACK, 2 + FRAMES, numbers);
    log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                           .number = 10 * i,
                                           .address = i + 1,
                                           .size = 1,
                                           .stack = i + 1});
  }
  read_soon();
  ck_assert_uint_eq(trace->event_count, STACKS);
  ck_assert_uint_eq(trace->stacks[trace->events[STACKS - 1].stack].count,
                    FRAMES);
}

// Definitions whose numbers come in falling order, with holes.
TEST_LOOP(numbers_in_any_order_are_sorted, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { TEXTS = 200000 };
  log_page(&file, 1);
  for (uint64_t i = TEXTS; i > 0; i--)
    log_text(&file, i * 3, "x");
  for (uint64_t i = 0; i < TEXTS; i++) {
    log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                           .number = i,
                                           .address = i + 1,
                                           .size = 1,
                                           .tag = (i + 1) * 3});
  }
  read_soon();
  ck_assert_uint_eq(trace->tag_count, 2);
  for (size_t i = 0; i < TEXTS; i++)
    require(trace->events[i].tag == 1);
}

TEST_LOOP(a_million_frames_are_as_many, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { FRAMES = 1000000 };
  char text[24];
  log_page(&file, 1);
  for (uint32_t i = 1; i <= FRAMES; i++) {
    snprintf(text, sizeof text, "f%u", i);
    log_text(&file, i, text);
    LOG_DEFINE(&file, TARN__LOG_FRAME, i, 1, i, i);
  }
  read_soon();
  ck_assert_uint_eq(trace->frame_count, FRAMES);
  ck_assert_str_eq(trace->frames[FRAMES - 1].function, "f1000000");
}

// The shortest records there are: what they come to is bounded by their bytes.
TEST_LOOP(the_shortest_events_fit_in_the_memory, THREADS_ARE_WATCHED ? 0 : 1) {
  enum { PAGES = 300 };
  uint64_t number = 0;
  for (int page = 0; page < PAGES; page++) {
    tarn__trace_log_page *at = log_page(&file, 1);
    at->number = number;
    at->address = number;
    for (size_t i = 0; i < sizeof at->records / 4; i++, number++)
      log_raw(&file, "\x01\x01\x02\x01", 4);
  }
  read_soon();
  ck_assert_uint_eq(trace->event_count, number);
}

TEST_LOOP(a_file_of_zeros_behind_its_header_is_empty,
          THREADS_ARE_WATCHED ? 0 : 1) {
  enum { PAGES = 5000 };
  for (int page = 0; page < PAGES; page++)
    log_page(&file, 1)->magic = 0;
  read_soon();
  ck_assert_uint_eq(trace->event_count, 0);
}

// --- a file that grows -----------------------------------------------------

enum { GROWN_PAGES = 400 };

typedef struct grower {
  unsigned char *map;
  atomic_size_t reads;
  atomic_bool done;
} grower;

// So that the file is read again and again on its way.
static void wait_for_reads(grower *g, size_t page) {
  enum { PAGES_A_READ = 20 };
  while (atomic_load(&g->reads) < page / PAGES_A_READ)
    sched_yield();
}

// Two pages by turns, as two threads write them.
static void *grow(void *context) {
  grower *g = context;
  tarn__trace_log_writer writers[2] = {{0}};
  size_t next = 1;
  for (uint64_t number = 0;; number++) {
    tarn__trace_log_writer *writer = &writers[number % 2];
    tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                   .number = number,
                                   .time_us = number,
                                   .address = (number + 1) * 4096,
                                   .size = number + 1};
    if (writer->page == NULL || tarn__log_room(writer) < TARN__LOG_MOST_EVENT) {
      if (next == GROWN_PAGES) break;
      wait_for_reads(g, next);
      tarn__log_begin(
          writer,
          (tarn__trace_log_page *)(void *)(g->map + next++ * TARN__LOG_PAGE),
          (uint32_t)(number % 2) + 1, &event);
    }
    tarn__log_put_event(writer, &event);
  }
  atomic_store(&g->done, true);
  return NULL;
}

// Each event is the one that was written; none is missing but at the end,
// where a page may have been read before its last events came.
static size_t read_grown(const char *path) {
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_int_eq(trace->unfinished, false);
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    require(event->kind == TARN_TRACE_ALLOC);
    require(event->address == event->size * 4096);
    require(event->time_us == event->size - 1);
    require(event->size >= i + 1);
    if (i > 0) require(event->size > event[-1].size);
  }
  size_t count = trace->event_count;
  tarn_trace_destroy(trace);
  trace = NULL;
  return count;
}

TEST(a_file_that_grows_is_read_as_far_as_it_is) {
  char path[] = "/tmp/tarn-log-XXXXXX";
  pthread_t thread;
  size_t before = 0;
  size_t size = (size_t)GROWN_PAGES * TARN__LOG_PAGE;
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
  grower g = {.map =
                  mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)};
  ck_assert_ptr_ne(g.map, MAP_FAILED);
  close(fd);
  memcpy(g.map, file.bytes, TARN__LOG_PAGE);
  ck_assert_int_eq(pthread_create(&thread, NULL, grow, &g), 0);
  while (!atomic_load(&g.done)) {
    size_t count = read_grown(path);
    ck_assert_uint_ge(count, before);
    before = count;
    atomic_fetch_add(&g.reads, 1);
  }
  pthread_join(thread, NULL);
  ck_assert_uint_ge(read_grown(path), before);
  ck_assert_uint_gt(read_grown(path), 100000);
  munmap(g.map, size);
  unlink(path);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
