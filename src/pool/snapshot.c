// Snapshots by call: of one pool, and of all.
//
// All pools are taken one after the other, each under the registry's lock, so
// that none ends meanwhile; files are written without it.
#include "pool/snapshot.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// --- paths -----------------------------------------------------------------

// What stands for the letters of one path.
typedef struct letters {
  long process;
  unsigned number;
  const char *device;
} letters;

enum { LETTER_SIZE = 80 };

static tarn_status no_such_letter(const char *path, const char *at) {
  if (at[1] == '\0') {
    return tarn__fail(TARN_E_INVALID, "snapshot: '%s' ends with a single %%",
                      path);
  }
  return tarn__fail(TARN_E_INVALID,
                    "snapshot: %%%c in '%s': there are %%p, %%n, %%d and %%%%",
                    at[1], path);
}

static tarn_status check_path(const char *path, bool numbered) {
  bool has_number = false;
  if (path == NULL || *path == '\0') {
    return tarn__fail(TARN_E_INVALID, "snapshot: no path");
  }
  for (const char *at = path; (at = strchr(at, '%')) != NULL; at += 2) {
    if (at[1] == '\0' || strchr("pnd%", at[1]) == NULL) {
      return no_such_letter(path, at);
    }
    if (at[1] == 'n') has_number = true;
  }
  if (has_number || !numbered) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "snapshot: '%s' has no %%n, and each pool would replace "
                    "the file of the one before",
                    path);
}

tarn_status tarn__snapshot_check(tarn_trace_format format, const char *path,
                                 bool numbered) {
  if (tarn_trace_format_name(format) == NULL) {
    return tarn__fail(TARN_E_INVALID, "snapshot: no format has the number %d",
                      (int)format);
  }
  return check_path(path, numbered);
}

// What comes at |*at| of a path that was checked, which is passed over.
static size_t expand_one(const letters *l, const char **at,
                         char out[LETTER_SIZE]) {
  char first = *(*at)++;
  char letter = 0;
  if (first == '%') letter = *(*at)++;
  switch (letter) {
    case 'p':
      snprintf(out, LETTER_SIZE, "%ld", l->process);
      break;
    case 'n':
      snprintf(out, LETTER_SIZE, "%u", l->number);
      break;
    case 'd':
      snprintf(out, LETTER_SIZE, "%s", l->device);
      break;
    default:  // itself, as is the % of two
      snprintf(out, LETTER_SIZE, "%c", first);
  }
  return strlen(out);
}

// A device's name is part of a file's, not of its folders'.
static void keep_in_folder(char *name) {
  for (char *c = name; (c = strchr(c, '/')) != NULL;)
    *c = '_';
}

static size_t length_of(const letters *l, const char *path) {
  char part[LETTER_SIZE];
  size_t length = 0;
  for (const char *at = path; *at != '\0';)
    length += expand_one(l, &at, part);
  return length;
}

// NULL: no host memory. Freed with tarn__host_free_text.
static char *expand(const letters *l, const char *path) {
  char part[LETTER_SIZE];
  size_t used = 0;
  char *expanded = tarn__host_alloc(length_of(l, path) + 1);
  if (expanded == NULL) return NULL;
  for (const char *at = path; *at != '\0';) {
    size_t length = expand_one(l, &at, part);
    memcpy(expanded + used, part, length);
    used += length;
  }
  return expanded;  // what follows is zero
}

// --- files -----------------------------------------------------------------

static unsigned next_number(void) {
  static atomic_uint count;
  return atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

tarn_status tarn__snapshot_write_picture(tarn__pool_picture *picture,
                                         tarn_trace_format format,
                                         const char *path) {
  char device[LETTER_SIZE];
  tarn_trace *trace = NULL;
  tarn_status status = tarn__picture_trace(picture, &trace);
  if (status != TARN_OK) return status;
  snprintf(device, sizeof device, "%s", picture->device);
  keep_in_folder(device);
  letters l = {(long)getpid(), next_number(), device};
  char *file = expand(&l, path);
  status = file != NULL ? tarn_trace_write(trace, format, file) : TARN_E_NOMEM;
  tarn__host_free_text(file);
  tarn_trace_destroy(trace);
  return status;
}

// --- one pool --------------------------------------------------------------

static tarn_status take(tarn_pool *pool, tarn__pool_picture *out) {
  *out = (tarn__pool_picture){.blocks = NULL};
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  status = tarn__picture_take(pool, NULL, out);
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_trace(tarn_pool *pool, tarn_trace **out_trace) {
  tarn__pool_picture picture;
  *out_trace = NULL;
  tarn_status status = take(pool, &picture);
  if (status == TARN_OK) status = tarn__picture_trace(&picture, out_trace);
  tarn__picture_deinit(&picture);
  return status;
}

tarn_status tarn_pool_snapshot(tarn_pool *pool, tarn_trace_format format,
                               const char *path) {
  tarn__pool_picture picture;
  tarn_status status = tarn__snapshot_check(format, path, false);
  if (status != TARN_OK) return status;
  status = take(pool, &picture);
  if (status == TARN_OK) {
    status = tarn__snapshot_write_picture(&picture, format, path);
  }
  tarn__picture_deinit(&picture);
  return status;
}

// --- all pools -------------------------------------------------------------

static tarn_status take_next(void *context, tarn_pool *pool) {
  return take(pool, context);
}

// The first failure is returned, with its text.
static tarn_status write_all(tarn_trace_format format, const char *path) {
  tarn__failure first = {.status = TARN_OK};
  tarn_status status = TARN_OK;
  tarn__pool_picture picture;
  uint64_t number = 0;
  while (tarn__whose_next(&number, take_next, &picture, &status)) {
    if (status == TARN_OK) {
      status = tarn__snapshot_write_picture(&picture, format, path);
    }
    tarn__picture_deinit(&picture);
    tarn__failure_note(&first, status);
  }
  return tarn__failure_tell(&first);
}

tarn_status tarn_pool_snapshot_all(tarn_trace_format format, const char *path) {
  tarn_status status = tarn__not_in_callback();
  if (status == TARN_OK) status = tarn__snapshot_check(format, path, true);
  return status == TARN_OK ? write_all(format, path) : status;
}
