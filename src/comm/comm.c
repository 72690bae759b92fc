// A communicator: its operations, state and options.
//
// Invariant: after it is broken, only the operation destroy is called.
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "comm/local.h"
#include "comm/messages.h"

// --- beginning and end -----------------------------------------------------

static bool has_collectives(const tarn_comm_ops *ops) {
  return ops->broadcast != NULL && ops->allgather != NULL &&
         ops->alltoallv != NULL && ops->split != NULL;
}

static bool has_messages(const tarn_comm_ops *ops) {
  return ops->post != NULL && ops->test != NULL && ops->cancel != NULL;
}

static bool has_messages_alone(const tarn_comm_ops *ops) {
  return has_messages(ops) && ops->broadcast == NULL &&
         ops->allgather == NULL && ops->alltoallv == NULL && ops->split == NULL;
}

// Copies what the caller knows of |ops|.
static tarn_status read_ops(const tarn_comm_ops *ops, tarn_comm_ops *out) {
  size_t known = 0;
  *out = (tarn_comm_ops){0};
  if (!tarn__struct_size(ops->struct_size,
                         TARN__SIZE_UP_TO(tarn_comm_ops, check), sizeof *ops,
                         &known)) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_create: struct_size %zu of ops",
                      ops->struct_size);
  }
  memcpy(out, ops, known);
  bool some = out->post != NULL || out->test != NULL || out->cancel != NULL;
  if (out->name == NULL || out->destroy == NULL ||
      (some && !has_messages(out)) ||
      !(has_collectives(out) || has_messages_alone(out))) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_comm_create: ops lacks a required function or its name");
  }
  return TARN_OK;
}

// Puts the collectives of messages between |comm| and its engine.
static tarn_status put_messages(tarn_comm *comm) {
  tarn__comm_messages *messages = NULL;
  const char *name = comm->ops.name;
  if (!has_messages_alone(&comm->ops)) return TARN_OK;
  TARN__TRY(tarn__messages_create(&comm->ops, comm->self, comm->rank,
                                  comm->size, comm->timeout_ms, &messages));
  comm->ops = tarn__message_ops;
  comm->ops.name = name;
  comm->self = messages;
  comm->messages = messages;
  return TARN_OK;
}

static void free_comm(tarn_comm *comm) {
  tarn__host_free_array(comm->headers, comm->size, sizeof *comm->headers);
  tarn__host_free(comm, sizeof *comm);
}

tarn_status tarn_comm_create(const tarn_comm_ops *ops, void *self, size_t rank,
                             size_t size, uint64_t timeout_ms,
                             tarn_comm **out_comm) {
  tarn_comm_ops known;
  if (out_comm == NULL || ops == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_create: NULL");
  }
  *out_comm = NULL;
  if (rank >= size) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_create: rank %zu is not below size %zu", rank,
                      size);
  }
  TARN__TRY(read_ops(ops, &known));
  tarn_comm *comm = tarn__host_alloc(sizeof *comm);
  if (comm == NULL) return TARN_E_NOMEM;
  tarn_list_init(&comm->holders);
  comm->headers = tarn__host_array(size, sizeof *comm->headers);
  comm->ops = known;
  comm->self = self;
  comm->rank = rank;
  comm->size = size;
  comm->timeout_ms = timeout_ms;
  comm->generation = tarn__os_generation();
  comm->local = ops == &tarn__local_ops ? self : NULL;
  comm->messages = ops == &tarn__message_ops ? self : NULL;
  tarn_status status =
      comm->headers != NULL ? put_messages(comm) : TARN_E_NOMEM;
  if (status == TARN_OK) {
    *out_comm = comm;
  } else {
    free_comm(comm);
  }
  return status;
}

tarn_status tarn_comm_destroy(tarn_comm *comm) {
  if (comm == NULL) return TARN_OK;
  if (comm->held != 0) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_destroy: %zu whole memories still use it",
                      comm->held);
  }
  tarn__comm_near near = comm->near;
  comm->ops.destroy(comm->self);
  tarn__near_free((size_t *)(uintptr_t)near.machines, comm->size);
  free_comm(comm);
  return tarn_comm_destroy(near.comm);
}

void tarn__comm_hold(tarn_comm *comm, tarn_list *node) {
  comm->held++;
  tarn_list_add_tail(&comm->holders, node);
}

void tarn__comm_release(tarn_comm *comm, tarn_list *node) {
  comm->held--;
  tarn_list_del(node);
}

tarn_list *tarn__comm_holders(tarn_comm *comm) {
  return &comm->holders;
}

void tarn__comm_call_for(tarn_comm *comm, const tarn__comm_caller *caller) {
  comm->caller = caller;
}

// --- state -----------------------------------------------------------------

tarn_status tarn__comm_state(tarn_comm *comm) {
  if (comm == NULL) return tarn__fail(TARN_E_INVALID, "comm: NULL");
  if (comm->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "comm: created in the parent process, before the fork");
  }
  return tarn__failure_tell(&comm->broken);
}

tarn_status tarn_comm_check(tarn_comm *comm) {
  TARN__TRY(tarn__comm_state(comm));
  tarn_status status = tarn__near_check(comm);
  if (status == TARN_OK && comm->ops.check != NULL) {
    status = comm->ops.check(comm->self);
  }
  return tarn__comm_note_between(comm, status);
}

size_t tarn_comm_rank(const tarn_comm *comm) {
  return comm->rank;
}

size_t tarn_comm_size(const tarn_comm *comm) {
  return comm->size;
}

bool tarn__comm_is_for_any_thread(const tarn_comm *comm) {
  const tarn_comm_ops *ops =
      comm->messages != NULL ? &comm->messages->engine->ops : &comm->ops;
  return comm->local != NULL || (ops->flags & TARN_COMM_ANY_THREAD) != 0;
}

uint64_t tarn_comm_timeout_ms(const tarn_comm *comm) {
  return comm->timeout_ms;
}

const char *tarn_comm_kind(const tarn_comm *comm) {
  return comm->ops.name;
}

// --- options ---------------------------------------------------------------

static const uint64_t USUAL_MS = 30000;

static tarn_status timeout_of_environment(uint64_t *out_ms) {
  const char *text = secure_getenv("TARN_COMM_TIMEOUT_MS");
  *out_ms = USUAL_MS;
  if (text == NULL || *text == '\0') return TARN_OK;
  size_t digits = strspn(text, "0123456789");
  if (digits == strlen(text) && digits <= 15)
    *out_ms = strtoull(text, NULL, 10);
  if (digits == strlen(text) && digits <= 15 && *out_ms != 0) return TARN_OK;
  *out_ms = 0;
  return tarn__fail(
      TARN_E_INVALID,
      "TARN_COMM_TIMEOUT_MS is '%s', not a positive number of milliseconds",
      text);
}

tarn_status tarn__comm_options(const tarn_comm_options *given, uint32_t flags,
                               tarn_comm_options *out) {
  *out = (tarn_comm_options){.struct_size = sizeof *out};
  if (given != NULL) {
    TARN__TRY(tarn__take_struct("comm options", given,
                                TARN__SIZE_UP_TO(tarn_comm_options, timeout_ms),
                                out, sizeof *out));
  }
  if ((out->flags & ~flags) != 0) {
    return tarn__fail(TARN_E_INVALID, "comm options: invalid flags 0x%x",
                      (unsigned)out->flags);
  }
  if (out->timeout_ms != 0) return TARN_OK;
  return timeout_of_environment(&out->timeout_ms);
}
