// Which call the program is in, and what is said of a rank that is lost in it.
#include <stdio.h>

#include "base/status.h"
#include "comm/comm.h"
#include "comm/messages.h"

// --- the call --------------------------------------------------------------

const char *tarn__comm_call_name(uint32_t call) {
  static const char *const names[] = {
      [TARN__BARRIER] = "tarn_comm_barrier",
      [TARN__BROADCAST] = "tarn_comm_broadcast",
      [TARN__ALLGATHER] = "tarn_comm_allgather",
      [TARN__ALLTOALLV] = "tarn_comm_alltoallv",
      [TARN__SHARE] = "tarn_comm_share",
      [TARN__SAME] = "tarn_comm_same",
      [TARN__AGREE] = "tarn_comm_agree",
      [TARN__SPLIT] = "tarn_comm_split",
  };
  if (call >= sizeof names / sizeof *names || names[call] == NULL) return "?";
  return names[call];
}

void tarn__comm_say_call(const tarn_comm *comm, char *out, size_t out_size) {
  snprintf(out, out_size, "%s", tarn__comm_call_name(comm->call));
  if (comm->caller != NULL) {
    comm->caller->say(comm->caller->subject, out, out_size);
  }
}

// --- a loss ----------------------------------------------------------------

// Only over messages: on one machine all ranks get the same text, whatever they
// are in. Where nobody knows why a rank is silent, a wrong interface is the
// usual reason.
static tarn_status tell(const tarn_comm *comm, tarn_status status,
                        bool in_call) {
  char text[TARN__ERROR_TEXT];
  char call[128] = "";
  char way[192] = "";
  bool silent = status == TARN_E_TIMEOUT;
  bool lost = status == TARN_E_PEER_LOST;
  if (comm->messages == NULL || !(silent || lost)) return status;
  snprintf(text, sizeof text, "%s", tarn_last_error());
  if (in_call) tarn__comm_say_call(comm, call, sizeof call);
  if (silent) tarn__messages_describe(comm->messages, way, sizeof way);
  const char *in = silent ? " in " : ", missed in ";
  return tarn__fail(status, "%s%s%s%s%s", text, in_call ? in : "", call,
                    way[0] != '\0' ? ", over " : "", way);
}

static tarn_status note(tarn_comm *comm, tarn_status status, bool in_call) {
  if (status == TARN_OK || status == TARN_E_NOMEM || status == TARN_E_IO) {
    return status;
  }
  if (comm->broken.status == TARN_OK) status = tell(comm, status, in_call);
  tarn__failure_note(&comm->broken, status);
  return tarn__failure_tell(&comm->broken);
}

tarn_status tarn__comm_note(tarn_comm *comm, tarn_status status) {
  return note(comm, status, true);
}

tarn_status tarn__comm_note_between(tarn_comm *comm, tarn_status status) {
  return note(comm, status, false);
}
