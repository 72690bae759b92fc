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

#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "comm/rendezvous.h"

#define VARIABLE "TARN_COMM"

enum { DIGITS_OF_TOKEN = 2 * TARN__TOKEN };

typedef struct place {
  size_t rank;
  size_t size;
  int fd;
  char token[DIGITS_OF_TOKEN];
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

static void write_token(const tarn__comm_area *area, char *out) {
  for (size_t i = 0; i < TARN__TOKEN; i++) {
    *out++ = DIGITS[area->head->token[i] >> 4];
    *out++ = DIGITS[area->head->token[i] & 15];
  }
}

// Runs in a child of a process with threads too: calls no function of the C
// library that may not be called there.
static void write_place(const tarn_rendezvous *rendezvous, size_t rank,
                        char *out_variable) {
  const size_t numbers[] = {rank, rendezvous->size, (size_t)rendezvous->fd};
  char *at = out_variable;
  memcpy(at, VARIABLE "=", sizeof VARIABLE);
  at += sizeof VARIABLE;
  for (int i = 0; i < 3; i++) {
    at = write_number(at, numbers[i]);
    *at++ = ':';
  }
  write_token(&rendezvous->area, at);
  at[DIGITS_OF_TOKEN] = '\0';
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

static bool read_place(const char *text, place *out) {
  size_t fd = 0;
  *out = (place){0};
  if (!read_number(&text, &out->rank) || !read_number(&text, &out->size) ||
      !read_number(&text, &fd)) {
    return false;
  }
  if (strspn(text, DIGITS) != DIGITS_OF_TOKEN ||
      text[DIGITS_OF_TOKEN] != '\0') {
    return false;
  }
  out->fd = (int)fd;
  memcpy(out->token, text, DIGITS_OF_TOKEN);
  return out->size != 0 && out->size <= TARN_COMM_MOST_RANKS &&
         out->rank < out->size;
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

// Takes in the descriptors that the memory names, if they are mailboxes.
static tarn_status find_mailboxes(tarn_rendezvous *rendezvous, size_t rank) {
  const tarn__comm_member *members = rendezvous->area.members;
  rendezvous->receives[rank] = members[rank].receive;
  for (size_t i = 0; i < rendezvous->size; i++) {
    rendezvous->sends[i] = members[i].send;
    if (!tarn__os_is_mailbox(rendezvous->sends[i])) {
      return not_inherited("the mailbox of another rank");
    }
  }
  if (tarn__os_is_mailbox(rendezvous->receives[rank])) return TARN_OK;
  return not_inherited("the mailbox of this rank");
}

static tarn_status join_mapped(const place *it, tarn_rendezvous *rendezvous,
                               uint64_t timeout_ms, tarn_comm **out_comm) {
  char token[DIGITS_OF_TOKEN];
  write_token(&rendezvous->area, token);
  if (memcmp(token, it->token, sizeof token) != 0) return is_of_the_parent(it);
  TARN__TRY(find_mailboxes(rendezvous, it->rank));
  for (size_t i = 0; i < it->size; i++)
    tarn__os_close_on_exec(rendezvous->sends[i]);
  tarn__os_close_on_exec(rendezvous->receives[it->rank]);
  return tarn__join(rendezvous, it->rank, timeout_ms, out_comm);
}

static tarn_status join_named(const char *text, uint64_t timeout_ms,
                              bool *out_taken, tarn_comm **out_comm) {
  place it;
  tarn_rendezvous rendezvous;
  if (!read_place(text, &it)) {
    return tarn__fail(TARN_E_INVALID,
                      VARIABLE " is '%s', which does not name a place", text);
  }
  if (!tarn__area_is_behind(it.fd, it.size)) return is_of_the_parent(&it);
  tarn__rendezvous_init(&rendezvous, it.size);
  rendezvous.fd = it.fd;
  TARN__TRY(tarn__area_map(it.fd, it.size, &rendezvous.area));
  tarn_status status = join_mapped(&it, &rendezvous, timeout_ms, out_comm);
  *out_taken = rendezvous.area.head == NULL;
  tarn__area_unmap(&rendezvous.area);
  return status;
}

// --- the call --------------------------------------------------------------

static tarn_status take_place(const tarn_comm_options *options, bool *out_taken,
                              tarn_comm **out_comm) {
  const char *text = secure_getenv(VARIABLE);
  uint64_t timeout_ms = options->timeout_ms;
  bool found = false;
  if (text != NULL) return join_named(text, timeout_ms, out_taken, out_comm);
  tarn_status status = tarn__launcher_join(options, &found, out_comm);
  if (!found) status = tarn__join_alone(timeout_ms, out_comm);
  *out_taken = status == TARN_OK || (found && status != TARN_E_STATE);
  return status;
}

static tarn_status take_place_once(const tarn_comm_options *options,
                                   tarn_comm **out_comm) {
  static atomic_bool taken_before;
  bool taken = false;
  if (atomic_exchange(&taken_before, true)) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_from_environment: this process, or the one "
                      "that it was forked from, has taken its place");
  }
  tarn_status status = take_place(options, &taken, out_comm);
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
  TARN__TRY(tarn__comm_options(options, TARN_COMM_ALONE, &known));
  return (known.flags & TARN_COMM_ALONE) != 0
             ? tarn__join_alone(known.timeout_ms, out_comm)
             : take_place_once(&known, out_comm);
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
  TARN__TRY(
      tarn__rendezvous_check("tarn_rendezvous_hand_over", rendezvous, rank));
  if (out_variable == NULL || out_size < TARN_RENDEZVOUS_VARIABLE) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_rendezvous_hand_over: out_size is %zu, less than %d",
        out_variable == NULL ? 0 : out_size, TARN_RENDEZVOUS_VARIABLE);
  }
  write_place(rendezvous, rank, out_variable);
  if (let_inherit(rendezvous, rank)) return TARN_OK;
  memset(out_variable, 0, out_size);
  return tarn__fail(TARN_E_IO, "tarn_rendezvous_hand_over: %s",
                    strerror(errno));
}
