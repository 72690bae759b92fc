// Communicators of an engine: over its messages, with a near part at each
// machine; or, where all ranks are on one machine, by what those have.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/messages.h"

static const char CHECK[] = "TARN_COMM_CHECK";

static tarn_status read_check(bool *out_checks) {
  const char *text = secure_getenv("TARN_COMM_CHECK");
  *out_checks = false;
  if (text == NULL || *text == '\0' || strcmp(text, "0") == 0) return TARN_OK;
  *out_checks = strcmp(text, "1") == 0;
  if (*out_checks) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s is '%.20s', not 0 or 1", CHECK, text);
}

// A rank without checksums would take those of others for data.
static tarn_status agree_on_checks(tarn_comm *over) {
  bool checks = false;
  char what[32];
  tarn_status status = read_check(&checks);
  snprintf(what, sizeof what, "%s=%d", CHECK, checks ? 1 : 0);
  TARN__TRY(tarn__comm_agree_on(over, status, &checks, sizeof checks, what));
  if (checks && over->messages != NULL) {
    tarn__messages_use_checksums(over->messages);
  }
  return TARN_OK;
}

static void say_call(const void *subject, char *out, size_t out_size) {
  (void)subject;
  snprintf(out, out_size, "tarn_comm_from_engine");
}

// Owns |over|, a communicator over messages.
static tarn_status settle(tarn_comm *over, tarn_comm **out_comm) {
  const tarn__comm_caller caller = {.number = UINT64_MAX, .say = say_call};
  tarn__comm_near near = {0};
  tarn__comm_call_for(over, &caller);
  tarn_status status = agree_on_checks(over);
  if (status == TARN_OK) status = tarn__near_find(over, &near);
  tarn__comm_call_for(over, NULL);
  if (status == TARN_OK && near.machines != NULL) {
    tarn__near_attach(over, &near);
    *out_comm = over;
    return TARN_OK;
  }
  (void)tarn_comm_destroy(over);
  *out_comm = near.comm;
  return status;
}

tarn_status tarn_comm_from_engine(const tarn_comm_ops *ops, void *self,
                                  size_t rank, size_t size,
                                  const tarn_comm_options *options,
                                  tarn_comm **out_comm) {
  tarn_comm_options known;
  tarn_comm *over = NULL;
  if (out_comm != NULL) *out_comm = NULL;
  if (ops == NULL || out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_from_engine: NULL");
  }
  tarn_status status = tarn__comm_options(options, 0, &known);
  if (status == TARN_OK) {
    status = tarn_comm_create(ops, self, rank, size, known.timeout_ms, &over);
  }
  if (status == TARN_OK) return settle(over, out_comm);
  ops->destroy(self);
  return status;
}
