// The environment of a program: its rank, and for how long it waits.
//
//   TARN_COMM=RANK:SIZE:DESCRIPTOR:TOKEN
//
// The descriptor is that of the shared memory, which holds the numbers of all
// other descriptors. The token, in hexadecimal, is that of the memory.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/rendezvous.h"

#define VARIABLE "TARN_COMM"

typedef struct place {
  size_t rank;
  size_t size;
  int fd;
  unsigned char token[TARN__TOKEN];
} place;

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

// Runs in a child of a process with threads too: calls no function of the C
// library that may not be called there.
static void write_place(const place *it, char *out_variable) {
  const size_t numbers[] = {it->rank, it->size, (size_t)it->fd};
  char *at = out_variable;
  memcpy(at, VARIABLE "=", sizeof VARIABLE);
  at += sizeof VARIABLE;
  for (int i = 0; i < 3; i++) {
    at = write_number(at, numbers[i]);
    *at++ = ':';
  }
  *write_token(at, it->token) = '\0';
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

static bool read_place(const char *text, place *out) {
  size_t fd = 0;
  *out = (place){0};
  if (!read_number(&text, &out->rank) || !read_number(&text, &out->size) ||
      !read_number(&text, &fd)) {
    return false;
  }
  out->fd = (int)fd;
  return out->size != 0 && out->size <= TARN_COMM_MOST_RANKS &&
         out->rank < out->size && read_token(text, out->token);
}

// --- a place of a launcher -------------------------------------------------

static tarn_status not_inherited(const char *what) {
  return tarn__fail(TARN_E_INVALID,
                    VARIABLE " names a place, but %s was not inherited", what);
}

// The descriptor is closed or another file: a program that a rank starts has
// the variable of the rank, but the rank's descriptors are closed on exec.
static tarn_status is_of_the_parent(const place *it) {
  return tarn__fail(
      TARN_E_STATE,
      "tarn_comm_from_environment: " VARIABLE
      " names rank %zu of %zu, which this process has not inherited: the place "
      "is its parent's. To be alone, pass TARN_COMM_ALONE",
      it->rank, it->size);
}

// Fills |ends| with the descriptors that the memory names, if they are inboxes.
static tarn_status find_ends(const tarn__comm_area *area, size_t rank,
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

static tarn_status join_area(const place *it, tarn__comm_area area,
                             uint64_t timeout_ms, bool *out_taken,
                             tarn_comm **out_comm) {
  int *sends = tarn__host_array(2 * it->size, sizeof *sends);
  if (sends == NULL) return TARN_E_NOMEM;
  tarn__comm_ends ends = {sends, sends + it->size};
  tarn_status status = find_ends(&area, it->rank, sends, ends.receives);
  if (status == TARN_OK) {
    for (size_t i = 0; i < it->size; i++)
      tarn__os_close_on_exec(sends[i]);
    tarn__os_close_on_exec(ends.receives[it->rank]);
    status = tarn__join(area, ends, it->rank, timeout_ms, out_taken, out_comm);
  }
  tarn__host_free_array(sends, 2 * it->size, sizeof *sends);
  return status;
}

static tarn_status join_named(const char *text, uint64_t timeout_ms,
                              bool *out_taken, tarn_comm **out_comm) {
  place it;
  tarn__comm_area area;
  if (!read_place(text, &it)) {
    return tarn__fail(TARN_E_INVALID,
                      VARIABLE " is '%s', which does not name a place", text);
  }
  if (!tarn__area_is_behind(it.fd, it.size)) return is_of_the_parent(&it);
  tarn_status status = tarn__area_map(it.fd, it.size, &area);
  if (status != TARN_OK) return status;
  bool same = memcmp(area.head->token, it.token, TARN__TOKEN) == 0;
  status = same ? join_area(&it, area, timeout_ms, out_taken, out_comm)
                : is_of_the_parent(&it);
  if (*out_taken) {
    tarn__os_close(it.fd);
  } else {
    tarn__area_unmap(&area);
  }
  return status;
}

// --- without a place -------------------------------------------------------

// Variables of other launchers that hold the number of ranks.
static const char *const LAUNCHERS[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

// Empty, 0 or 1. A malformed number counts as several ranks.
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
                      "launcher passes no place on: call tarn_comm_meet, or "
                      "start the ranks by 'tarn run -n N -- PROGRAM', or pass "
                      "TARN_COMM_ALONE for rank 0 of 1 in each process",
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

// --- for launchers ---------------------------------------------------------

static bool let_inherit(const tarn_rendezvous *rendezvous, size_t rank) {
  for (size_t i = 0; i < rendezvous->size; i++) {
    if (!tarn__os_keep_on_exec(rendezvous->sends[i])) return false;
  }
  return tarn__os_keep_on_exec(rendezvous->receives[rank]) &&
         tarn__os_keep_on_exec(rendezvous->fd);
}

tarn_status tarn_rendezvous_hand_over(tarn_rendezvous *rendezvous, size_t rank,
                                      char *out_variable, size_t out_size) {
  tarn_status status =
      tarn__rendezvous_check("tarn_rendezvous_hand_over", rendezvous, rank);
  if (status != TARN_OK) return status;
  if (out_variable == NULL || out_size < TARN_RENDEZVOUS_VARIABLE) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_rendezvous_hand_over: out_size is %zu, less than %d",
        out_variable == NULL ? 0 : out_size, TARN_RENDEZVOUS_VARIABLE);
  }
  place it = {.rank = rank, .size = rendezvous->size, .fd = rendezvous->fd};
  memcpy(it.token, rendezvous->area.head->token, sizeof it.token);
  write_place(&it, out_variable);
  if (let_inherit(rendezvous, rank)) return TARN_OK;
  memset(out_variable, 0, out_size);
  return tarn__fail(TARN_E_IO, "tarn_rendezvous_hand_over: %s",
                    strerror(errno));
}
