// Ranks that have inherited nothing meet by a path. The first process to come
// becomes the host and waits there for the others.
//
// Without a path, they meet by one allgather of the caller's: rank 0 makes a
// folder and a job name that only the ranks learn. A rank with valid numbers
// and a function takes part in that allgather whatever else is wrong, so that
// no rank waits in it in vain. For the same reason its records are on the
// stack.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/group.h"

// --- at the listener
// -----------------------------------------------------------

static tarn_status tell_late(const tarn__comm_group *group) {
  return tarn__fail(
      TARN_E_TIMEOUT,
      "tarn_comm_meet: rank %zu was not admitted at '%s' within %" PRIu64
      " ms: other processes hold the lock of its folder, or wait there",
      group->rank, group->path, group->timeout_ms);
}

static tarn_status go_in(const tarn__comm_group *group,
                         tarn__comm_listener *listener, tarn__comm_wait *wait,
                         bool *out_again, tarn_comm **out_comm) {
  int fd = -1;
  TARN__TRY(tarn__listener_try(listener, group->size, &fd));
  if (listener->listener >= 0)
    return tarn__host(group, listener, wait, out_comm);
  if (fd >= 0)
    return tarn__joiner(group, listener, fd, wait, out_again, out_comm);
  *out_again = true;
  return TARN_OK;
}

static tarn_status meet(const tarn__comm_group *group,
                        tarn__comm_listener *listener, tarn_comm **out_comm) {
  static const uint64_t while_ns = 500000;
  tarn__comm_wait wait = tarn__wait_begin(group->timeout_ms);
  for (;;) {
    bool again = false;
    uint64_t left = tarn__wait_left(&wait);
    tarn_status status = go_in(group, listener, &wait, &again, out_comm);
    if (!again) return status;
    if (left == 0) return tell_late(group);
    tarn__os_await_any(NULL, 0, while_ns, NULL);
  }
}

static tarn_status meet_at(const tarn__comm_group *group,
                           tarn_comm **out_comm) {
  tarn__comm_listener listener;
  TARN__TRY(tarn__listener_find(group->path, &listener));
  tarn_status status = meet(group, &listener, out_comm);
  tarn__listener_close(&listener);
  return status;
}

static tarn_status check_place(const char *call, size_t rank, size_t size) {
  if (size != 0 && size <= TARN_COMM_MOST_RANKS && rank < size) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: rank %zu of %zu ranks, of which there may be 1 to %d",
                    call, rank, size, TARN_COMM_MOST_RANKS);
}

// --- the call --------------------------------------------------------------

static tarn_status check_job(const char *job) {
  size_t size = strnlen(job, TARN_COMM_MOST_JOB + 1);
  if (size <= TARN_COMM_MOST_JOB) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "tarn_comm_meet: the job has more than %d bytes",
                    TARN_COMM_MOST_JOB);
}

tarn_status tarn_comm_meet(const char *path, size_t rank, size_t size,
                           const tarn_comm_options *options,
                           tarn_comm **out_comm) {
  tarn_comm_options known;
  if (out_comm != NULL) *out_comm = NULL;
  if (path == NULL || out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_meet: NULL");
  }
  TARN__TRY(check_place("tarn_comm_meet", rank, size));
  TARN__TRY(tarn__comm_options(options, 0, &known));
  const tarn__comm_group group = {.path = path,
                                  .job = known.job == NULL ? "" : known.job,
                                  .rank = rank,
                                  .size = size,
                                  .timeout_ms = known.timeout_ms};
  TARN__TRY(check_job(group.job));
  return meet_at(&group, out_comm);
}

// === by an allgather =======================================================

enum { RANDOM = 16, VERSION = 1 };

// The record of a rank in the allgather.
typedef struct record {
  uint32_t version;
  uint32_t rank;
  uint32_t size;
  int32_t status;
  char machine[48];
  char path[TARN__OS_MOST_PATH + 1];  // of rank 0
  char job[2 * RANDOM + 4];           // likewise
} record;

// The machine, or what is said to be one.
static tarn_status find_machine(record *own) {
  const char *name = secure_getenv("TARN_HOST");
  if (name == NULL || *name == '\0') {
    tarn__os_machine(own->machine, sizeof own->machine);
    return TARN_OK;
  }
  int size = snprintf(own->machine, sizeof own->machine, "%s", name);
  if ((size_t)size < sizeof own->machine) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "TARN_HOST '%.64s' has more than %zu bytes",
                    name, sizeof own->machine - 1);
}

// --- what rank 0 makes -----------------------------------------------------

static const char NAME[] = "/ranks";

static tarn_status make_folder(char *out_path) {
  const char *folder = secure_getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  int size =
      snprintf(out_path, TARN__OS_MOST_PATH + 1, "%s/tarn-XXXXXX", folder);
  if (size < 0 || (size_t)size + sizeof NAME - 1 > TARN__OS_MOST_PATH) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_comm_meet_by: TMPDIR '%.64s' is too long for a socket's path",
        folder);
  }
  if (!tarn__os_make_folder(out_path)) {
    return tarn__fail(TARN_E_IO, "tarn_comm_meet_by: no folder in '%s': %s",
                      folder, strerror(errno));
  }
  memcpy(out_path + size, NAME, sizeof NAME);
  return TARN_OK;
}

static tarn_status make_place(record *own) {
  unsigned char bytes[RANDOM];
  if (!tarn__os_random(bytes, sizeof bytes)) {
    return tarn__fail(TARN_E_IO, "tarn_comm_meet_by: no random bytes: %s",
                      strerror(errno));
  }
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(own->job + 2 * i, 3, "%02x", bytes[i]);
  return make_folder(own->path);
}

// A failed call may leave its socket.
static void remove_place(record *own) {
  if (own->path[0] == '\0') return;
  char *name = own->path + strlen(own->path) - (sizeof NAME - 1);
  tarn__os_folder folder;
  *name = '\0';
  if (tarn__os_folder_open(own->path, &folder)) {
    (void)tarn__os_folder_remove(&folder, NAME + 1);
    tarn__os_folder_close(&folder);
  }
  tarn__os_remove_folder(own->path);
}

// --- what all have told ----------------------------------------------------

static tarn_status check_record(const record *all, size_t rank, size_t size) {
  const record *told = &all[rank];
  if (told->version != VERSION || told->rank != rank || told->size != size) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet_by: the allgather returned other data "
                      "for rank %zu of %zu than that rank gave",
                      rank, size);
  }
  if (strncmp(told->machine, all[0].machine, sizeof told->machine) != 0) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "tarn_comm_meet_by: rank %zu is on a different machine than rank 0",
        rank);
  }
  return TARN_OK;
}

// A rank whose own status it is has said why.
static tarn_status check_status(const record *told, size_t own) {
  if (told->status == TARN_OK || told->rank == own) {
    return (tarn_status)told->status;
  }
  return tarn__fail((tarn_status)told->status,
                    "tarn_comm_meet_by: rank %u cannot take part: %s",
                    (unsigned)told->rank,
                    tarn_status_name((tarn_status)told->status));
}

static tarn_status check_all(const record *all, size_t rank, size_t size) {
  TARN__TRY(check_status(&all[rank], rank));
  for (size_t i = 0; i < size; i++)
    TARN__TRY(check_record(all, i, size));
  for (size_t i = 0; i < size; i++)
    TARN__TRY(check_status(&all[i], rank));
  return TARN_OK;
}

// --- the call --------------------------------------------------------------

static tarn_status gather(tarn_comm_gather *function, void *context,
                          const record *own, record *all) {
  tarn_status status = function(context, own, sizeof *own, all);
  if (status == TARN_OK) return TARN_OK;
  return tarn__fail(status < 0 ? status : TARN_E_INVALID,
                    "tarn_comm_meet_by: the allgather returned %s",
                    tarn_status_name(status));
}

// Rank 0 removes its folder when it returns: a rank that finds none any more
// comes after rank 0 has given up.
static tarn_status explain(char *path, tarn_status status) {
  tarn__os_folder folder;
  char *slash = strrchr(path, '/');
  if (slash == NULL) return status;
  *slash = '\0';
  if (tarn__os_folder_open(path, &folder)) {
    tarn__os_folder_close(&folder);
    return status;
  }
  if (errno != ENOENT) return status;
  return tarn__fail(TARN_E_PEER_LOST,
                    "tarn_comm_meet_by: rank 0 has given up, and removed '%s'",
                    path);
}

static tarn_status meet_by(const record *all, uint64_t timeout_ms, size_t rank,
                           size_t size, tarn_comm **out_comm) {
  record first = all[0];
  first.path[sizeof first.path - 1] = '\0';
  first.job[sizeof first.job - 1] = '\0';
  const tarn__comm_group group = {.path = first.path,
                                  .job = first.job,
                                  .rank = rank,
                                  .size = size,
                                  .timeout_ms = timeout_ms};
  tarn_status status = meet_at(&group, out_comm);
  return status == TARN_E_IO ? explain(first.path, status) : status;
}

tarn_status tarn_comm_meet_by(tarn_comm_gather *function, void *context,
                              size_t rank, size_t size,
                              const tarn_comm_options *options,
                              tarn_comm **out_comm) {
  record all[TARN_COMM_MOST_RANKS];
  tarn_comm_options known = {0};
  if (out_comm != NULL) *out_comm = NULL;
  if (function == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_meet_by: NULL");
  }
  TARN__TRY(check_place("tarn_comm_meet_by", rank, size));
  record own = {
      .version = VERSION, .rank = (uint32_t)rank, .size = (uint32_t)size};
  tarn_status status = find_machine(&own);
  if (status == TARN_OK) {
    status = out_comm == NULL
                 ? tarn__fail(TARN_E_INVALID, "tarn_comm_meet_by: NULL")
                 : tarn__comm_options(options, 0, &known);
  }
  if (status == TARN_OK && rank == 0) status = make_place(&own);
  own.status = status;
  tarn__failure before = {0};
  tarn__failure_note(&before, status);
  status = gather(function, context, &own, all);
  if (status == TARN_OK) {
    (void)tarn__failure_tell(&before);
    status = check_all(all, rank, size);
  }
  if (status == TARN_OK) {
    status = meet_by(all, known.timeout_ms, rank, size, out_comm);
  }
  if (rank == 0) remove_place(&own);
  return status;
}
