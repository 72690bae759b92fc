// place.h - where ranks meet that have no common path: a folder that one of
// them makes for the time of the call.
#ifndef TARN_COMM_PLACE_H_
#define TARN_COMM_PLACE_H_

#include "base/os_peer.h"
#include "tarn/comm.h"

enum { TARN__PLACE_RANDOM = 16, TARN__MACHINE = 48 };

typedef struct tarn__comm_place {
  char path[TARN__OS_MOST_PATH + 1];     // empty: none
  char job[2 * TARN__PLACE_RANDOM + 4];  // known to the ranks alone
} tarn__comm_place;

// Makes a folder. |call| is for the text.
//
// TARN_E_INVALID  TMPDIR is too long.
// TARN_E_IO       there can be none.
TARN_MUST_CHECK tarn_status tarn__place_make(const char *call,
                                             tarn__comm_place *out);

// Removes it, with the socket that a failed call may have left. |place| may
// have none.
void tarn__place_remove(tarn__comm_place *place);

// Whether this process sees its folder.
TARN_MUST_CHECK bool tarn__place_is_here(const tarn__comm_place *place);

// Meets there, where rank 0 has made it. Waits |come_ms| for all to come, then
// |timeout_ms|, as the communicator does.
//
// TARN_E_PEER_LOST  rank 0 has given up. Otherwise as tarn_comm_meet.
TARN_MUST_CHECK tarn_status tarn__place_meet(const tarn__comm_place *place,
                                             size_t rank, size_t size,
                                             uint64_t come_ms,
                                             uint64_t timeout_ms,
                                             tarn_comm **out_comm);

// The machine of this process, or what is said to be one.
//
// TARN_E_INVALID  TARN_HOST is too long.
TARN_MUST_CHECK tarn_status tarn__place_machine(char out_name[TARN__MACHINE]);

#endif  // TARN_COMM_PLACE_H_
