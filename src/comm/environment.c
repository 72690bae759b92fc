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

void tarn__environment_write(tarn__place_named place,
                             const unsigned char *token, char *out_variable) {
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

bool tarn__environment_read(const char *text, tarn__place_named *out_place,
                            unsigned char *out_token) {
  size_t fd = 0;
  *out_place = (tarn__place_named){0};
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

tarn_status tarn__comm_timeout(const tarn_comm_options *options,
                               uint64_t *out_ms) {
  tarn_comm_options known = {0};
  size_t size = 0;
  if (options != NULL) {
    if (!tarn__struct_size(options->struct_size, sizeof known, sizeof known,
                           &size)) {
      return tarn__fail(TARN_E_INVALID, "comm: struct_size %zu of options",
                        options->struct_size);
    }
    memcpy(&known, options, size);
  }
  *out_ms = known.timeout_ms;
  return known.timeout_ms != 0 ? TARN_OK : timeout_of_environment(out_ms);
}

// --- a place of a launcher -------------------------------------------------

static tarn_status not_inherited(const char *what) {
  return tarn__fail(TARN_E_INVALID,
                    VARIABLE " names a place, but %s was not inherited", what);
}

static bool knows_token(const tarn__area *area, const unsigned char *token) {
  return memcmp(area->head->token, token, TARN__TOKEN) == 0;
}

// Fills |sends| and |receives| with what the memory says, if that is there.
static tarn_status find_sockets(const tarn__area *area, size_t rank, int *sends,
                                int *receives) {
  for (size_t i = 0; i < area->ranks; i++) {
    sends[i] = area->seats[i].send;
    receives[i] = i == rank ? area->seats[i].receive : -1;
    if (!tarn__os_is_inbox(sends[i])) {
      return not_inherited("the inbox of another rank");
    }
  }
  if (tarn__os_is_inbox(receives[rank])) return TARN_OK;
  return not_inherited("the inbox of this rank");
}

static void close_on_exec(const tarn__area *area, size_t rank, const int *sends,
                          const int *receives) {
  for (size_t i = 0; i < area->ranks; i++)
    tarn__os_close_on_exec(sends[i]);
  tarn__os_close_on_exec(receives[rank]);
}

static tarn_status join_sockets(tarn__place_named place, tarn__area area,
                                uint64_t timeout_ms, bool *out_taken,
                                tarn_comm **out_comm) {
  int *ends = tarn__host_array(2 * place.size, sizeof *ends);
  if (ends == NULL) return TARN_E_NOMEM;
  tarn__sockets sockets = {ends, ends + place.size};
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
  tarn__place_named place;
  unsigned char token[TARN__TOKEN];
  tarn__area area;
  if (!tarn__environment_read(text, &place, token)) {
    return tarn__fail(TARN_E_INVALID, VARIABLE " is '%s', which is no place",
                      text);
  }
  tarn_status status = tarn__area_map(place.fd, place.size, &area);
  if (status != TARN_OK) return status;
  status = knows_token(&area, token)
               ? join_sockets(place, area, timeout_ms, out_taken, out_comm)
               : not_inherited("its memory");
  if (*out_taken) {
    tarn__os_close(place.fd);
  } else {
    tarn__area_unmap(&area);
  }
  return status;
}

// Without a launcher: a meeting of one.
static tarn_status join_alone(uint64_t timeout_ms, bool *out_taken,
                              tarn_comm **out_comm) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm_options options = {sizeof options, timeout_ms};
  tarn_status status = tarn_rendezvous_create(1, &meeting);
  if (status != TARN_OK) return status;
  status = tarn_comm_join(meeting, 0, &options, out_comm);
  tarn_rendezvous_destroy(meeting);
  *out_taken = status == TARN_OK;
  return status;
}

tarn_status tarn_comm_from_environment(const tarn_comm_options *options,
                                       tarn_comm **out_comm) {
  static atomic_bool taken_before;
  uint64_t timeout_ms = 0;
  bool taken = false;
  if (out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_from_environment: NULL");
  }
  *out_comm = NULL;
  tarn_status status = tarn__comm_timeout(options, &timeout_ms);
  if (status != TARN_OK) return status;
  if (atomic_exchange(&taken_before, true)) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_from_environment: this process, or the one "
                      "that it was forked from, has taken its place");
  }
  const char *text = secure_getenv(VARIABLE);
  status = text == NULL ? join_alone(timeout_ms, &taken, out_comm)
                        : join_named(text, timeout_ms, &taken, out_comm);
  atomic_store(&taken_before, taken);
  return status;
}
