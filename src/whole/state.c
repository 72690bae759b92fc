// Functions for all files of the room: checks, names of calls in texts, charges
// to the pool, and the reference to the device.
//
// A device counts the whole memories on it and cannot be closed before the
// count is 0, even if no rank has a byte there.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "tarn/account.h"
#include "whole/whole.h"

// --- checks ----------------------------------------------------------------

tarn_status tarn__whole_check(const tarn_whole *whole) {
  if (whole == NULL) return tarn__fail(TARN_E_INVALID, "whole: NULL");
  if (whole->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE, "whole %llu was created before the fork",
                      (unsigned long long)whole->serial);
  }
  return tarn__not_in_callback();
}

tarn_status tarn__whole_refuse(const char *what, size_t size) {
  int reason = errno;
  bool full = reason == ENOMEM || reason == ENOSPC;
  return tarn__fail(full ? TARN_FULL : TARN_E_IO, "%s of %zu bytes: %s", what,
                    size, strerror(reason));
}

void tarn__whole_close_all(tarn_whole *whole) {
  tarn__os_close_all(&whole->fd, 1);
  tarn__os_close_all(whole->fds, whole->ranks);
}

// --- calls in words --------------------------------------------------------

tarn__whole_subject tarn__whole_subject_of(tarn__whole_call call,
                                           const tarn_whole *whole) {
  return (tarn__whole_subject){call, whole->serial, whole->name};
}

void tarn__whole_say(const void *subject, char *out, size_t out_size) {
  static const char *const calls[] = {
      [TARN__WHOLE_GATHER] = "tarn_whole_gather",
      [TARN__WHOLE_SCATTER] = "tarn_whole_scatter",
      [TARN__WHOLE_SCATTER_ADD] = "tarn_whole_scatter_add",
      [TARN__WHOLE_GATHER_BEGIN] = "tarn_whole_gather_begin",
      [TARN__WHOLE_GATHER_END] = "tarn_whole_gather_end",
      [TARN__WHOLE_CREATE] = "tarn_whole_create",
      [TARN__WHOLE_TABLE_CREATE] = "tarn_whole_table_create",
      [TARN__WHOLE_DESTROY] = "tarn_whole_destroy",
      [TARN__WHOLE_COLLECT] = "tarn_whole_collect",
      [TARN__WHOLE_APPLY] = "tarn_embedding_apply",
      [TARN__WHOLE_DISK_OPEN] = "tarn_disk_open",
      [TARN__WHOLE_DISK_FLUSH] = "tarn_disk_flush",
  };
  const tarn__whole_subject *s = subject;
  char number[32] = "";
  char name[64] = "";
  if (s->serial != 0) {
    snprintf(number, sizeof number, " whole %llu",
             (unsigned long long)s->serial);
  }
  if (s->name[0] != '\0') snprintf(name, sizeof name, " '%.47s'", s->name);
  bool either = number[0] != '\0' || name[0] != '\0';
  snprintf(out, out_size, "%s%s%s%s", calls[s->call], either ? " of" : "",
           number, name);
}

tarn__comm_caller tarn__whole_caller(const tarn__whole_subject *subject) {
  return (tarn__comm_caller){.number = subject->serial * TARN__WHOLE_CALLS +
                                       (uint64_t)subject->call + 1,
                             .say = tarn__whole_say,
                             .subject = subject};
}

tarn_status tarn__whole_say_call(const tarn__whole_subject *subject,
                                 tarn_status status) {
  char call[128];
  char text[TARN__ERROR_TEXT];
  if (status != TARN_E_INVALID) return status;
  tarn__whole_say(subject, call, sizeof call);
  snprintf(text, sizeof text, "%s", tarn_last_error());
  return tarn__fail(status, "%s: %s", call, text);
}

// --- the pool's account ----------------------------------------------------

tarn_status tarn__whole_charge(tarn_whole *whole, size_t bytes) {
  if (bytes == 0) return TARN_OK;
  TARN__TRY(tarn_pool_charge(whole->pool, bytes, whole->tag));
  whole->charged = bytes;
  return TARN_OK;
}

// --- the device ------------------------------------------------------------

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  atomic_size_t *count = pointer;
  if (commit) {
    tarn__host_free(count, sizeof *count);
    return TARN_OK;
  }
  size_t wholes = atomic_load(count);
  if (wholes == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: cannot close: %zu whole memories are on it",
                    tarn_device_name(device), wholes);
}

static tarn_status attach(tarn_device *device) {
  atomic_size_t *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_WHOLE, made, on_close);
  if (status == TARN_OK) return TARN_OK;
  tarn__host_free(made, sizeof *made);
  // Another thread may have been quicker.
  bool attached = tarn_device_attached(device, TARN_SLOT_WHOLE) != NULL;
  return attached ? TARN_OK : status;
}

tarn_status tarn__whole_ref_device(tarn_device *device) {
  if (device == NULL) return TARN_OK;
  if (tarn_device_attached(device, TARN_SLOT_WHOLE) == NULL)
    TARN__TRY(attach(device));
  atomic_size_t *count = tarn_device_attached(device, TARN_SLOT_WHOLE);
  atomic_fetch_add(count, 1);
  return TARN_OK;
}

void tarn__whole_unref_device(tarn_device *device) {
  if (device == NULL) return;
  atomic_size_t *count = tarn_device_attached(device, TARN_SLOT_WHOLE);
  if (count != NULL) atomic_fetch_sub(count, 1);
}
