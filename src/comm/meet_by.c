// Ranks without a common path meet by one allgather of the caller's: rank 0
// makes a folder and a job name that only the ranks learn.
//
// A rank with valid numbers and a function takes part in that allgather
// whatever else is wrong, so that no rank waits in it in vain. For the same
// reason its records are on the stack.
#include <string.h>

#include "base/status.h"
#include "comm/comm.h"
#include "comm/group.h"
#include "comm/place.h"

enum { VERSION = 1 };

// The record of a rank in the allgather.
typedef struct record {
  uint32_t version;
  uint32_t rank;
  uint32_t size;
  int32_t status;
  char machine[TARN__MACHINE];
  tarn__comm_place place;  // of rank 0
} record;

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
  TARN__TRY(tarn__meet_check("tarn_comm_meet_by", rank, size));
  record own = {
      .version = VERSION, .rank = (uint32_t)rank, .size = (uint32_t)size};
  tarn_status status = tarn__place_machine(own.machine);
  if (status == TARN_OK) {
    status = out_comm == NULL
                 ? tarn__fail(TARN_E_INVALID, "tarn_comm_meet_by: NULL")
                 : tarn__comm_options(options, 0, &known);
  }
  if (status == TARN_OK && rank == 0) {
    status = tarn__place_make("tarn_comm_meet_by", &own.place);
  }
  own.status = status;
  tarn__failure before = {0};
  tarn__failure_note(&before, status);
  status = gather(function, context, &own, all);
  if (status == TARN_OK) {
    (void)tarn__failure_tell(&before);
    status = check_all(all, rank, size);
  }
  if (status == TARN_OK) {
    status = tarn__place_meet(&all[0].place, rank, size, known.timeout_ms,
                              known.timeout_ms, out_comm);
  }
  if (rank == 0) tarn__place_remove(&own.place);
  return status;
}
