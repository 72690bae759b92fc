// What is told of buffers and accesses that are open.
#include <stdio.h>

#include "sim/kit.h"
#include "support/faults.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { MOST = 64 };

// --- buffers ---------------------------------------------------------------

static tarn_synced *buffer_named(const char *name, size_t size) {
  tarn_synced_options options = {.struct_size = sizeof options, .name = name};
  tarn_synced *buffer = NULL;
  assert_ok(tarn_synced_create(size, &options, &buffer));
  return buffer;
}

// --- what is open ----------------------------------------------------------

typedef struct opens {
  tarn_synced_open of[MOST];
  char names[MOST][16];
  size_t count;
} opens;

static tarn_status note_open(void *context, const tarn_synced_open *open) {
  opens *o = context;
  require(open->struct_size == sizeof *open);
  require(o->count < MOST);
  snprintf(o->names[o->count], sizeof o->names[0], "%s", open->name);
  o->of[o->count++] = *open;
  return TARN_OK;
}

static opens all_open(void) {
  opens o = {.count = 0};
  assert_ok(tarn_synced_each_open(note_open, &o));
  return o;
}

START_TEST(open_buffers_and_accesses) {
  static unsigned char outside[300];
  tarn_device *device = sim_open("sim:0");
  ck_assert_uint_eq(all_open().count, 0);
  tarn_synced *first = buffer_named("first", 100);
  tarn_synced *second = buffer_named(NULL, 200);
  tarn_synced *third = buffer_named("third", 300);
  tarn_synced *view = NULL;
  tarn_access a;
  tarn_access b;
  assert_ok(tarn_synced_view(second, 50, 100, &view));
  assert_ok(
      tarn_synced_wrap(third, TARN_HOST, (tarn_addr)(uintptr_t)outside, NULL));
  assert_ok(tarn_synced_begin(view, 10, 20, tarn_place_on(device),
                              TARN_WRITE_DISCARD, NULL, &a));
  assert_ok(tarn_synced_begin(second, 0, 10, TARN_HOST, TARN_READ, NULL, &b));

  opens o = all_open();
  ck_assert_uint_eq(o.count, 3);
  ck_assert_str_eq(o.names[0], "first");
  ck_assert_str_eq(o.names[1], "");
  ck_assert_str_eq(o.names[2], "third");
  ck_assert_uint_lt(o.of[0].id, o.of[1].id);
  ck_assert_uint_lt(o.of[1].id, o.of[2].id);

  ck_assert_uint_eq(o.of[0].size, 100);
  ck_assert_uint_eq(o.of[0].handles, 1);
  ck_assert_uint_eq(o.of[0].accesses, 0);
  ck_assert_uint_eq(o.of[0].memory, 0);
  ck_assert_uint_eq(o.of[0].borrowed, 0);
  ck_assert_uint_eq(o.of[0].mode, 0);

  ck_assert_uint_eq(o.of[1].handles, 2);
  ck_assert_uint_eq(o.of[1].accesses, 2);
  ck_assert_uint_eq(o.of[1].memory, 400);
  ck_assert(tarn_place_equal(o.of[1].place, tarn_place_on(device)));
  ck_assert_uint_eq(o.of[1].mode, TARN_WRITE_DISCARD);
  ck_assert_uint_eq(o.of[1].access_offset, 60);
  ck_assert_uint_eq(o.of[1].access_size, 20);

  ck_assert_uint_eq(o.of[2].borrowed, 300);
  ck_assert_uint_eq(o.of[2].memory, 0);

  assert_ok(tarn_synced_end(&a));
  o = all_open();
  ck_assert_uint_eq(o.of[1].accesses, 1);
  ck_assert(tarn_place_equal(o.of[1].place, TARN_HOST));
  ck_assert_uint_eq(o.of[1].mode, TARN_READ);
  assert_ok(tarn_synced_end(&b));
  assert_ok(tarn_synced_destroy(second));
  o = all_open();
  ck_assert_uint_eq(o.count, 3);
  ck_assert_uint_eq(o.of[1].handles, 1);
  assert_ok(tarn_synced_destroy(view));
  assert_ok(tarn_synced_destroy(first));
  assert_ok(tarn_synced_destroy(third));
  ck_assert_uint_eq(all_open().count, 0);
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(an_access_of_no_bytes_is_nowhere) {
  tarn_synced *buffer = buffer_named(NULL, 10);
  tarn_access access;
  assert_ok(
      tarn_synced_begin(buffer, 5, 0, TARN_HOST, TARN_READ, NULL, &access));
  opens o = all_open();
  ck_assert_uint_eq(o.of[0].accesses, 1);
  ck_assert(tarn_place_equal(o.of[0].place, TARN_HOST));
  ck_assert_uint_eq(o.of[0].access_offset, 5);
  ck_assert_uint_eq(o.of[0].access_size, 0);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_destroy(buffer));
}
END_TEST

typedef struct enders {
  tarn_synced *buffers[40];
  size_t next;
  size_t stop_at;
} enders;

// The text that it is shown outlives the buffer.
static tarn_status end_next(void *context, const tarn_synced_open *open) {
  enders *e = context;
  char name[16];
  snprintf(name, sizeof name, "number %zu", e->next);
  require(tarn_synced_destroy(e->buffers[e->next++]) == TARN_OK);
  require(strcmp(open->name, name) == 0);
  return e->next == e->stop_at ? TARN_FULL : TARN_OK;
}

START_TEST(visits_may_end_what_they_see) {
  enders e = {.stop_at = 30};
  for (size_t i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof name, "number %zu", i);
    e.buffers[i] = buffer_named(name, i);
  }
  assert_status(tarn_synced_each_open(end_next, &e), TARN_FULL);
  ck_assert_uint_eq(all_open().count, 10);
  e.stop_at = 0;
  assert_ok(tarn_synced_each_open(end_next, &e));
  ck_assert_uint_eq(e.next, 40);
  ck_assert_uint_eq(all_open().count, 0);
}
END_TEST

// --- failures --------------------------------------------------------------

static void look_at_all(void *context) {
  size_t *met = context;
  opens open = {.count = 0};
  tarn_status status = tarn_synced_each_open(note_open, &open);
  require(status == TARN_OK ? open.count == 40 : open.count == 0);
  if (status != TARN_OK) ++*met;
}

START_TEST(host_memory_that_runs_out) {
  tarn_synced *buffers[40];
  size_t met = 0;
  faults_install();
  for (size_t i = 0; i < 40; i++)
    buffers[i] = buffer_named("another", i);
  ck_assert_uint_gt(faults_sweep(look_at_all, &met), 40);
  ck_assert_uint_gt(met, 40);
  for (size_t i = 0; i < 40; i++)
    assert_ok(tarn_synced_destroy(buffers[i]));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("synced_open");
  ADD_CASE(suite, "open", open_buffers_and_accesses,
           an_access_of_no_bytes_is_nowhere, visits_may_end_what_they_see);
  ADD_CASE(suite, "failures", host_memory_that_runs_out);
  return run_suite(suite);
}
