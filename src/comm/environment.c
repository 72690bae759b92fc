// What the environment says: which rank this process is, and how long to wait.
#include "comm/environment.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/join.h"

#define VARIABLE "TARN_COMM"

static const char DIGITS[] = "0123456789abcdef";

// --- writing ---------------------------------------------------------------

static char *write_number(char *at, size_t value) {
  char digits[24];
  size_t count = 0;
  do {
    digits[count++] = DIGITS[value % 10];
    value /= 10;
  } while (value != 0);
  while (count > 0)
    *at++ = digits[--count];
  return at;
}

static char *write_token(char *at, const unsigned char *token) {
  for (size_t i = 0; i < TARN__TOKEN; i++) {
    *at++ = DIGITS[token[i] >> 4];
    *at++ = DIGITS[token[i] & 15];
  }
  return at;
}

void tarn__environment_write(tarn__comm_place place, const unsigned char *token,
                             char *out_variable) {
  const size_t numbers[] = {place.rank, place.size, (size_t)place.fd};
  char *at = out_variable;
  memcpy(at, VARIABLE "=", sizeof VARIABLE);
  at += sizeof VARIABLE;
  for (int i = 0; i < 3; i++) {
    at = write_number(at, numbers[i]);
    *at++ = ':';
  }
  *write_token(at, token) = '\0';
}

// --- reading ---------------------------------------------------------------

// A number of at most 9 digits, and the ':' behind it.
static bool read_number(const char **io_text, size_t *out_value) {
  size_t value = 0;
  size_t digits = strspn(*io_text, "0123456789");
  if (digits == 0 || digits > 9 || (*io_text)[digits] != ':') return false;
  for (size_t i = 0; i < digits; i++)
    value = value * 10 + (size_t)((*io_text)[i] - '0');
  *io_text += digits + 1;
  *out_value = value;
  return true;
}

static bool read_token(const char *text, unsigned char *out_token) {
  size_t digits = strspn(text, DIGITS);
  if (digits != (size_t)2 * TARN__TOKEN || text[digits] != '\0') {
    return false;
  }
  for (size_t i = 0; i < TARN__TOKEN; i++) {
    size_t high = (size_t)(strchr(DIGITS, text[2 * i]) - DIGITS);
    size_t low = (size_t)(strchr(DIGITS, text[2 * i + 1]) - DIGITS);
    out_token[i] = (unsigned char)(high << 4 | low);
  }
  return true;
}

bool tarn__environment_read(const char *text, tarn__comm_place *out_place,
                            unsigned char *out_token) {
  size_t fd = 0;
  *out_place = (tarn__comm_place){0};
  if (!read_number(&text, &out_place->rank) ||
      !read_number(&text, &out_place->size) || !read_number(&text, &fd)) {
    return false;
  }
  out_place->fd = (int)fd;
  return out_place->size != 0 && out_place->size <= TARN_COMM_MOST_RANKS &&
         out_place->rank < out_place->size && read_token(text, out_token);
}

// --- how long to wait ------------------------------------------------------

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
  return tarn__fail(TARN_E_INVALID,
                    "TARN_COMM_TIMEOUT_MS is '%s', not milliseconds above 0",
                    text);
}

tarn_status tarn__comm_options(const tarn_comm_options *given, uint32_t flags,
                               tarn_comm_options *out) {
  size_t size = 0;
  *out = (tarn_comm_options){.struct_size = sizeof *out};
  if (given != NULL) {
    if (!tarn__struct_size(given->struct_size,
                           TARN__SIZE_UP_TO(tarn_comm_options, timeout_ms),
                           sizeof *out, &size)) {
      return tarn__fail(TARN_E_INVALID, "comm: struct_size %zu of options",
                        given->struct_size);
    }
    memcpy(out, given, size);
  }
  if ((out->flags & ~flags) != 0) {
    return tarn__fail(TARN_E_INVALID, "comm: flags 0x%x of options",
                      (unsigned)out->flags);
  }
  if (out->timeout_ms != 0) return TARN_OK;
  return timeout_of_environment(&out->timeout_ms);
}

// --- a place of a launcher -------------------------------------------------

static tarn_status not_inherited(const char *what) {
  return tarn__fail(TARN_E_INVALID,
                    VARIABLE " names a place, but %s was not inherited", what);
}

// What is behind the descriptor now is another file, or none: a program that a
// rank starts has the rank's variable, but a rank's descriptors are closed on
// exec.
static tarn_status is_of_the_parent(tarn__comm_place place) {
  return tarn__fail(TARN_E_STATE,
                    "tarn_comm_from_environment: " VARIABLE
                    " names rank %zu of %zu, which this process has not "
                    "inherited: the place is its parent's. To be alone, pass "
                    "TARN_COMM_ALONE",
                    place.rank, place.size);
}

static bool knows_token(const tarn__comm_area *area,
                        const unsigned char *token) {
  return memcmp(area->head->token, token, TARN__TOKEN) == 0;
}

// Fills |sends| and |receives| with what the memory says, if that is there.
static tarn_status find_sockets(const tarn__comm_area *area, size_t rank,
                                int *sends, int *receives) {
  for (size_t i = 0; i < area->ranks; i++) {
    sends[i] = area->members[i].send;
    receives[i] = i == rank ? area->members[i].receive : -1;
    if (!tarn__os_is_inbox(sends[i])) {
      return not_inherited("the inbox of another rank");
    }
  }
  if (tarn__os_is_inbox(receives[rank])) return TARN_OK;
  return not_inherited("the inbox of this rank");
}

static void close_on_exec(const tarn__comm_area *area, size_t rank,
                          const int *sends, const int *receives) {
  for (size_t i = 0; i < area->ranks; i++)
    tarn__os_close_on_exec(sends[i]);
  tarn__os_close_on_exec(receives[rank]);
}

static tarn_status join_sockets(tarn__comm_place place, tarn__comm_area area,
                                uint64_t timeout_ms, bool *out_taken,
                                tarn_comm **out_comm) {
  int *ends = tarn__host_array(2 * place.size, sizeof *ends);
  if (ends == NULL) return TARN_E_NOMEM;
  tarn__comm_sockets sockets = {ends, ends + place.size};
  tarn_status status = find_sockets(&area, place.rank, ends, sockets.receives);
  if (status == TARN_OK) {
    close_on_exec(&area, place.rank, ends, sockets.receives);
    status =
        tarn__join(area, sockets, place.rank, timeout_ms, out_taken, out_comm);
  }
  tarn__host_free_array(ends, 2 * place.size, sizeof *ends);
  return status;
}

static tarn_status join_named(const char *text, uint64_t timeout_ms,
                              bool *out_taken, tarn_comm **out_comm) {
  tarn__comm_place place;
  unsigned char token[TARN__TOKEN];
  tarn__comm_area area;
  if (!tarn__environment_read(text, &place, token)) {
    return tarn__fail(TARN_E_INVALID, VARIABLE " is '%s', which is no place",
                      text);
  }
  if (!tarn__area_is_behind(place.fd, place.size)) {
    return is_of_the_parent(place);
  }
  tarn_status status = tarn__area_map(place.fd, place.size, &area);
  if (status != TARN_OK) return status;
  status = knows_token(&area, token)
               ? join_sockets(place, area, timeout_ms, out_taken, out_comm)
               : is_of_the_parent(place);
  if (*out_taken) {
    tarn__os_close(place.fd);
  } else {
    tarn__area_unmap(&area);
  }
  return status;
}

// --- without a place -------------------------------------------------------

// What other launchers say of the number of ranks.
static const char *const LAUNCHERS[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

// 0, 1, or nothing. What is no number says nothing that could be relied on.
static bool is_at_most_one(const char *text) {
  size_t zeros = strspn(text, "0");
  const char *rest = text + zeros;
  return *rest == '\0' || strcmp(rest, "1") == 0;
}

static tarn_status check_launchers(void) {
  for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++) {
    const char *text = secure_getenv(LAUNCHERS[i]);
    if (text == NULL || is_at_most_one(text)) continue;
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_from_environment: %s is '%.20s', but that "
                      "launcher hands no place over: let the ranks meet by "
                      "tarn_comm_meet, or start them by 'tarn run -n N -- "
                      "PROGRAM', or pass TARN_COMM_ALONE if each process is "
                      "to be rank 0 of 1",
                      LAUNCHERS[i], text);
  }
  return TARN_OK;
}

// A rendezvous of one.
static tarn_status join_alone(uint64_t timeout_ms, tarn_comm **out_comm) {
  tarn_rendezvous *rendezvous = NULL;
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = timeout_ms};
  tarn_status status = tarn_rendezvous_create(1, &rendezvous);
  if (status != TARN_OK) return status;
  status = tarn_comm_join(rendezvous, 0, &options, out_comm);
  tarn_rendezvous_destroy(rendezvous);
  return status;
}

// --- the call --------------------------------------------------------------

static tarn_status take_place(uint64_t timeout_ms, bool *out_taken,
                              tarn_comm **out_comm) {
  const char *text = secure_getenv(VARIABLE);
  if (text != NULL) return join_named(text, timeout_ms, out_taken, out_comm);
  tarn_status status = check_launchers();
  if (status == TARN_OK) status = join_alone(timeout_ms, out_comm);
  *out_taken = status == TARN_OK;
  return status;
}

static tarn_status take_place_once(uint64_t timeout_ms, tarn_comm **out_comm) {
  static atomic_bool taken_before;
  bool taken = false;
  if (atomic_exchange(&taken_before, true)) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_from_environment: this process, or the one "
                      "that it was forked from, has taken its place");
  }
  tarn_status status = take_place(timeout_ms, &taken, out_comm);
  atomic_store(&taken_before, taken);
  return status;
}

tarn_status tarn_comm_from_environment(const tarn_comm_options *options,
                                       tarn_comm **out_comm) {
  tarn_comm_options known;
  if (out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_from_environment: NULL");
  }
  *out_comm = NULL;
  tarn_status status = tarn__comm_options(options, TARN_COMM_ALONE, &known);
  if (status != TARN_OK) return status;
  return (known.flags & TARN_COMM_ALONE) != 0
             ? join_alone(known.timeout_ms, out_comm)
             : take_place_once(known.timeout_ms, out_comm);
}
