// Ranks that meet by one allgather of the caller's: rank 0 makes a folder and a
// job that nobody else knows, all learn of them and meet there by path.
//
// Whoever has a function and numbers takes part in that allgather, whatever is
// wrong with it, so that nobody waits in there in vain. What it needs is on the
// stack for the same reason.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/group.h"

enum { RANDOM = 16, VERSION = 1 };

// What a rank tells all others.
typedef struct record {
  uint32_t version;
  uint32_t rank;
  uint32_t size;
  int32_t status;
  char machine[48];
  char path[TARN__OS_MOST_PATH + 1];  // of rank 0
  char job[2 * RANDOM + 4];           // likewise
} record;

// --- what rank 0 makes -----------------------------------------------------

static const char NAME[] = "/ranks";

static tarn_status make_folder(char *out_path) {
  const char *folder = secure_getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  int size =
      snprintf(out_path, TARN__OS_MOST_PATH + 1, "%s/tarn-XXXXXX", folder);
  if (size < 0 || (size_t)size + sizeof NAME - 1 > TARN__OS_MOST_PATH) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet_by: TMPDIR '%.64s' is too long for a "
                      "socket's path",
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

// A rendezvous that has come to nothing may leave its socket.
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
                      "tarn_comm_meet_by: what the allgather has of rank %zu "
                      "of %zu is not what that rank gave",
                      rank, size);
  }
  if (strncmp(told->machine, all[0].machine, sizeof told->machine) != 0) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "tarn_comm_meet_by: rank %zu is on another machine than "
                      "rank 0",
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
  tarn_status status = check_status(&all[rank], rank);
  for (size_t i = 0; status == TARN_OK && i < size; i++)
    status = check_record(all, i, size);
  for (size_t i = 0; status == TARN_OK && i < size; i++)
    status = check_status(&all[i], rank);
  return status;
}

// --- the call --------------------------------------------------------------

static tarn_status gather(tarn_comm_gather *function, void *context,
                          const record *own, record *all) {
  tarn_status status = function(context, own, sizeof *own, all);
  if (status == TARN_OK) return TARN_OK;
  return tarn__fail(status < 0 ? status : TARN_E_INVALID,
                    "tarn_comm_meet_by: the allgather of the caller's has "
                    "answered %s",
                    tarn_status_name(status));
}

static tarn_status meet(const record *all, uint64_t timeout_ms, size_t rank,
                        size_t size, tarn_comm **out_comm) {
  record first = all[0];
  first.path[sizeof first.path - 1] = '\0';
  first.job[sizeof first.job - 1] = '\0';
  const tarn__comm_group group = {.path = first.path,
                                  .job = first.job,
                                  .rank = rank,
                                  .size = size,
                                  .timeout_ms = timeout_ms};
  return tarn__group_meet(&group, out_comm);
}

static tarn_status check_place(size_t rank, size_t size) {
  if (size != 0 && size <= TARN_COMM_MOST_RANKS && rank < size) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "tarn_comm_meet_by: rank %zu of %zu, not of 1 to %d", rank,
                    size, TARN_COMM_MOST_RANKS);
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
  tarn_status status = check_place(rank, size);
  if (status != TARN_OK) return status;
  record own = {
      .version = VERSION, .rank = (uint32_t)rank, .size = (uint32_t)size};
  tarn__os_machine(own.machine, sizeof own.machine);
  status = out_comm == NULL
               ? tarn__fail(TARN_E_INVALID, "tarn_comm_meet_by: NULL")
               : tarn__comm_options(options, 0, &known);
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
    status = meet(all, known.timeout_ms, rank, size, out_comm);
  }
  if (rank == 0) remove_place(&own);
  return status;
}
