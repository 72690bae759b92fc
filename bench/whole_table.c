// A rank's device and memory, and the table: made against the clock, filled by
// its owners, and ended.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kit/tool.h"
#include "probe.h"
#include "whole_indices.h"
#include "whole_scene.h"

enum { PAGE = 4096, TIMES = 3 };

// ---------------------------------------------------------------------------
// Device and batches
// ---------------------------------------------------------------------------

// "sim" is sim:1 at rank 1, where there is one.
static tarn_status open_device(whole_scene *s) {
  char name[WHOLE_NAME_SIZE];
  const char *asked = s->bench->device;
  bool has_number = strchr(asked, ':') != NULL;
  snprintf(name, sizeof name, has_number ? "%s" : "%s:%zu", asked, s->rank);
  tarn_status status = tarn_device_open(name, &s->device);
  if (status != TARN_E_INVALID || has_number) return status;
  return tarn_device_open(asked, &s->device);
}

static bool take(whole_scene *s, size_t size, tarn_addr *out) {
  return whole_did(s,
                   tarn_device_allocate(tarn_place_on(s->device), size, out));
}

static void give(whole_scene *s, tarn_addr addr, size_t size) {
  if (addr == 0) return;
  (void)tarn_device_deallocate(tarn_place_on(s->device), addr, size);
}

// Whether the host reaches |size| bytes at |addr| there.
static bool is_plain(tarn_place place, tarn_addr addr, size_t size) {
  void *view = NULL;
  return tarn_device_host_view(place, addr, size, &view) == TARN_OK &&
         view == (void *)(uintptr_t)addr;
}

static bool take_all(whole_scene *s) {
  size_t batch = s->bench->batch_bytes;
  size_t most = 0;  // indices: those of the smallest rows
  for (size_t i = 0; i < s->bench->row_count; i++) {
    size_t count = whole_batch_rows(s->bench, s->bench->row_bytes[i]);
    if (count > most) most = count;
  }
  s->indices_size = most * sizeof *s->numbers;
  s->numbers = tool_array(most, sizeof *s->numbers);
  s->rows = tool_array(batch, 1);
  return take(s, batch, &s->dense) && take(s, batch, &s->source) &&
         take(s, s->indices_size, &s->indices);
}

bool whole_scene_open(whole_scene *s) {
  bool mine = whole_did(s, open_device(s)) && take_all(s);
  if (mine) {
    size_t batch = s->bench->batch_bytes;
    s->is_plain = is_plain(tarn_place_on(s->device), s->dense, batch);
    mine = whole_put(s, s->dense, s->rows, batch) &&  // nothing is touched for
           whole_put(s, s->source, s->rows, batch);   // the first time later
  }
  return whole_agree(s, mine, 0, NULL);
}

void whole_scene_close(whole_scene *s) {
  if (s->device != NULL) {
    give(s, s->indices, s->indices_size);
    give(s, s->source, s->bench->batch_bytes);
    give(s, s->dense, s->bench->batch_bytes);
    (void)tarn_device_close(s->device);
  }
  free(s->rows);
  free(s->numbers);
}

bool whole_put(whole_scene *s, tarn_addr to, const void *from, size_t size) {
  return whole_did(s, tarn_copy_h2d(s->device, to, from, size, NULL));
}

bool whole_get(whole_scene *s, void *to, tarn_addr from, size_t size) {
  return whole_did(s, tarn_copy_d2h(s->device, to, from, size, NULL));
}

// ---------------------------------------------------------------------------
// Making
// ---------------------------------------------------------------------------

static tarn_place place_of(const whole_scene *s) {
  tarn_place_kind kind = s->kind.on_host ? TARN_PLACE_HOST : TARN_PLACE_DEVICE;
  return (tarn_place){s->device, kind};
}

static bool create(whole_scene *s, size_t size) {
  tarn_whole_options options = {.struct_size = sizeof options,
                                .type = s->kind.type,
                                .place = place_of(s),
                                .size = size,
                                .granularity = whole_granularity(s->bench)};
  return whole_did(s, tarn_whole_create(s->comm, &options, &s->whole));
}

// Seconds from one moment on until all ranks have done |step|; negative if one
// has not.
typedef bool step_fn(whole_scene *s);
static double time_step(whole_scene *s, step_fn *step) {
  uint64_t begin = 0;
  uint64_t end = 0;
  if (!whole_agree(s, true, stopwatch_clock_ns(), &begin)) return -1;
  bool did = step(s);
  if (!whole_agree(s, did, stopwatch_clock_ns(), &end)) return -1;
  return (double)(end - begin) / 1e9;
}

static bool create_to_time(whole_scene *s) {
  return create(s, s->bench->ready_bytes);
}

// The part of a rank if there are no huge pages.
static bool touch_to_time(whole_scene *s) {
  size_t size = s->bench->ready_bytes / s->bench->ranks;
  unsigned char *bytes = s->touched;
  for (size_t at = 0; at < size; at += PAGE)
    *(volatile unsigned char *)(bytes + at) = 1;
  return true;
}

static double time_touch(whole_scene *s) {
  size_t size = s->bench->ready_bytes / s->bench->ranks;
  void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  bool mapped = bytes != MAP_FAILED;
  if (!mapped)
    snprintf(s->why, sizeof s->why, "no %zu bytes of shared memory", size);
  s->touched = bytes;
  if (mapped) (void)madvise(bytes, size, MADV_NOHUGEPAGE);
  double seconds =
      whole_agree(s, mapped, 0, NULL) ? time_step(s, touch_to_time) : -1;
  if (mapped) (void)munmap(bytes, size);
  return seconds;
}

static double time_create(whole_scene *s) {
  double seconds = time_step(s, create_to_time);
  return whole_table_end(s) ? seconds : -1;
}

bool whole_table_time(whole_scene *s, whole_made *out) {
  double ready[TIMES];
  double touch[TIMES];
  for (size_t i = 0; i < TIMES; i++) {
    ready[i] = time_create(s);
    if (ready[i] < 0) return false;
    touch[i] = time_touch(s);
    if (touch[i] < 0) return false;
  }
  out->ready_ms = probe_median(ready, TIMES) * 1e3;
  out->touch_ms = probe_median(touch, TIMES) * 1e3;
  return true;
}

// ---------------------------------------------------------------------------
// Filling
// ---------------------------------------------------------------------------

static unsigned char *view_of(const whole_scene *s,
                              const tarn_whole_part *part) {
  void *view = NULL;
  if (part->size == 0 || tarn_device_host_view(place_of(s), part->address,
                                               part->size, &view) != TARN_OK) {
    return NULL;
  }
  return view;
}

static void find_parts(whole_scene *s) {
  for (size_t r = 0; r < s->bench->ranks; r++) {
    tarn_whole_part part;
    tarn_status status = tarn_whole_of_rank(s->whole, r, &part);
    s->parts[r] = status == TARN_OK ? view_of(s, &part) : NULL;
  }
}

// Through a batch, where the host does not reach it.
static bool fill_away(whole_scene *s, const tarn_whole_part *part) {
  size_t most = s->bench->batch_bytes;
  for (size_t at = 0; at < part->size; at += most) {
    size_t size = part->size - at < most ? part->size - at : most;
    whole_fill(s->rows, size / sizeof(float),
               (part->offset + at) / sizeof(float));
    if (!whole_put(s, part->address + at, s->rows, size)) return false;
  }
  return true;
}

static bool fill(whole_scene *s) {
  tarn_whole_part part;
  if (!whole_did(s, tarn_whole_local(s->whole, &part))) return false;
  if (s->parts[s->rank] == NULL) return fill_away(s, &part);
  whole_fill((float *)(void *)s->parts[s->rank], part.size / sizeof(float),
             part.offset / sizeof(float));
  return true;
}

static bool describe(whole_scene *s, whole_made *out) {
  tarn_whole_info info = {.struct_size = sizeof info};
  if (!whole_did(s, tarn_whole_query(s->whole, &info))) return false;
  out->page_size = info.page_size;
  out->huge_bytes = info.huge_bytes;
  return true;
}

bool whole_table_make(whole_scene *s, whole_made *out) {
  if (!whole_agree(s, create(s, s->bench->table_bytes), 0, NULL)) return false;
  find_parts(s);
  return whole_agree(s, fill(s) && describe(s, out), 0, NULL);
}

bool whole_table_end(whole_scene *s) {
  if (s->whole == NULL) return true;
  tarn_status status = tarn_whole_destroy(s->whole);
  s->whole = NULL;
  memset(s->parts, 0, sizeof s->parts);
  return whole_agree(s, whole_did(s, status), 0, NULL);
}
