// What is read from a path may come in through the standard input, whose size
// nobody knows before its end.
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

enum { FIRST_ROOM = 1 << 16 };

typedef struct incoming {
  unsigned char *bytes;
  size_t size;
  size_t room;
} incoming;

static tarn_status widen(incoming *in, size_t room) {
  unsigned char *wider = tarn__host_resize(in->bytes, in->room, room, 1);
  if (wider == NULL) return TARN_E_NOMEM;
  in->bytes = wider;
  in->room = room;
  return TARN_OK;
}

static tarn_status make_room(incoming *in) {
  size_t room = FIRST_ROOM;
  if (in->size < in->room) return TARN_OK;
  if (in->room != 0 && !tarn_size_mul(in->room, 2, &room)) {
    return tarn__fail(TARN_E_NOMEM, "standard input: too many bytes");
  }
  return widen(in, room);
}

static tarn_status read_part(incoming *in, size_t *out_part) {
  *out_part = 0;
  for (;;) {
    ssize_t got = read(STDIN_FILENO, in->bytes + in->size, in->room - in->size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return tarn__fail(TARN_E_IO, "standard input: %s", strerror(errno));
    }
    *out_part = (size_t)got;
    in->size += (size_t)got;
    return TARN_OK;
  }
}

static tarn_status read_to_end(incoming *in) {
  size_t part = 1;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && part > 0) {
    status = make_room(in);
    if (status == TARN_OK) status = read_part(in, &part);
  }
  return status == TARN_OK ? widen(in, in->size) : status;
}

tarn_status tarn__os_read_input(const char *path, unsigned char **out_bytes,
                                size_t *out_size) {
  if (strcmp(path, "-") != 0) {
    return tarn__os_read_file(path, SIZE_MAX, out_bytes, out_size);
  }
  incoming in = {0};
  tarn_status status = read_to_end(&in);
  if (status != TARN_OK) {
    tarn__host_free(in.bytes, in.room);
    in = (incoming){0};
  }
  *out_bytes = in.bytes;
  *out_size = in.size;
  return status;
}
