// Reading: all of it goes through fetch. The recorder is built without the
// compiler's own functions, so those that have to be fast are named.
#include "record/python_read.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/numbers.h"

enum { LONGEST = 1 << 20 };  // bytes of a text or a table

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

__attribute__((noinline)) static bool fetch_guarded(const void *at, void *out,
                                                    size_t size) {
  struct iovec to = {out, size};
  struct iovec from = {(void *)(uintptr_t)at, size};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

bool python_read_is_guarded(void) {
  char from = 1;
  char to = 0;
  return fetch_guarded(&from, &to, sizeof to) && to == from;
}

// False, and zeros: there is no memory.
static inline bool fetch(const python_reader *r, const void *at, void *out,
                         size_t size) {
  if (__builtin_expect(r->guarded, 0)) {
    if (fetch_guarded(at, out, size)) return true;
    memset(out, 0, size);
    return false;
  }
  __builtin_memcpy(out, at, size);
  return true;
}

static inline const unsigned char *fetch_pointer(const python_reader *r,
                                                 const unsigned char *at) {
  const unsigned char *found;
  (void)fetch(r, at, &found, sizeof found);
  return found;
}

static inline int32_t fetch_int(const python_reader *r,
                                const unsigned char *at) {
  int32_t found;
  (void)fetch(r, at, &found, sizeof found);
  return found;
}

static inline unsigned char fetch_byte(const python_reader *r,
                                       const unsigned char *at) {
  unsigned char found;
  (void)fetch(r, at, &found, sizeof found);
  return found;
}

static uint64_t word_at(const unsigned char *at) {
  uint64_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

// Of all bytes, by two lanes that do not wait for each other. It is not
// guarded: keys are made once the layout holds.
static uint64_t hash_of(const unsigned char *at, size_t size) {
  enum { WORD = sizeof(uint64_t) };
  uint64_t one = size;
  uint64_t other = 1;
  uint64_t rest = 0;
  for (; size >= (size_t)2 * WORD; size -= (size_t)2 * WORD) {
    one = numbers_mix(one, word_at(at));
    other = numbers_mix(other, word_at(at + WORD));
    at += (size_t)2 * WORD;
  }
  if (size >= WORD) {
    one = numbers_mix(one, word_at(at));
    at += WORD;
    size -= WORD;
  }
  for (; size > 0; size--)
    rest = rest << 8 | *at++;
  return numbers_mix(numbers_mix(one, other), rest);
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

static bool is_code(const python_reader *r, const unsigned char *object) {
  enum { TYPE = 8 };  // behind the count of references
  return object != NULL && fetch_pointer(r, object + TYPE) == r->code_type;
}

static int32_t position_of(const python_reader *r, const unsigned char *frame,
                           const unsigned char *code) {
  const python_layout *l = r->layout;
  const unsigned char *at = frame + l->frame_position;
  if (l->position == PYTHON_BYTES) return fetch_int(r, at);
  if (l->position == PYTHON_UNITS) return 2 * fetch_int(r, at);
  return (int32_t)(fetch_pointer(r, at) - (code + l->code_begin));
}

static size_t length_of_lines(const python_reader *r,
                              const unsigned char *lines) {
  uint64_t length;
  (void)fetch(r, lines + r->layout->bytes_length, &length, sizeof length);
  return length;
}

// Code of the interpreter's own, as what calls __init__ from 3.12 on, has a
// table of one byte, which says that there are no lines. Before 3.11 there was
// none, and a table without entries means that all is one line.
static bool is_of_program(const python_reader *r, const unsigned char *code) {
  const unsigned char *lines;
  if (r->layout->lines != PYTHON_LINES_11) return true;
  lines = fetch_pointer(r, code + r->layout->code_lines);
  return lines != NULL && length_of_lines(r, lines) > 1;
}

// Of the C stack: below it another call of the interpreter begins.
static bool is_border(const python_reader *r, const unsigned char *frame) {
  enum { OF_C_STACK = 3 };
  return r->layout->frame_owner != PYTHON_NOWHERE &&
         fetch_byte(r, frame + r->layout->frame_owner) == OF_C_STACK;
}

static bool is_entry(const python_reader *r, const unsigned char *frame) {
  const python_layout *l = r->layout;
  if (l->frame_is_entry != PYTHON_NOWHERE)
    return fetch_byte(r, frame + l->frame_is_entry) != 0;
  return l->frame_owner == PYTHON_NOWHERE;
}

static const unsigned char *innermost(const python_reader *r,
                                      const unsigned char *thread) {
  const python_layout *l = r->layout;
  const unsigned char *at = fetch_pointer(r, thread + l->thread_frame);
  if (l->holder_frame == PYTHON_NOWHERE || at == NULL) return at;
  return fetch_pointer(r, at + l->holder_frame);
}

// Adds |frame| to the |count| that |out| has. False: it is none.
static bool take(const python_reader *r, const unsigned char *frame,
                 python_frame *out, int *count) {
  const unsigned char *code = fetch_pointer(r, frame + r->layout->frame_code);
  if (!is_code(r, code)) return false;
  if (!is_of_program(r, code)) return true;
  out[(*count)++] =
      (python_frame){code, position_of(r, frame, code), is_entry(r, frame)};
  return true;
}

int python_read_frames(const python_reader *reader, const void *thread,
                       python_frame *out_frames, int most) {
  const unsigned char *frame = innermost(reader, thread);
  int count = 0;
  for (int left = 2 * most; frame != NULL && count < most && left > 0; left--) {
    if (is_border(reader, frame)) {
      if (count > 0) out_frames[count - 1].is_entry = true;
    } else if (!take(reader, frame, out_frames, &count)) {
      break;
    }
    frame = fetch_pointer(reader, frame + reader->layout->frame_back);
  }
  return count;
}

// ---------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------

// A text's characters; without any where it is not of the usual form.
typedef struct characters {
  const unsigned char *at;
  size_t count;
  unsigned width;  // bytes of each: 1, 2, 4
} characters;

static characters characters_of(const python_reader *r,
                                const unsigned char *text) {
  enum { KIND_SHIFT = 2, KIND = 7, COMPACT = 0x20, ASCII = 0x40 };
  const python_layout *l = r->layout;
  uint64_t count;
  uint32_t state = (uint32_t)fetch_int(r, text + l->text_state);
  unsigned width = (state >> KIND_SHIFT) & KIND;
  (void)fetch(r, text + l->text_length, &count, sizeof count);
  if ((state & COMPACT) == 0 || count > LONGEST ||
      (width != 1 && width != 2 && width != 4)) {
    return (characters){.width = 1};
  }
  uint16_t begin = (state & ASCII) != 0 ? l->text_ascii : l->text_wide;
  return (characters){text + begin, count, width};
}

static uint64_t hash_of_text(characters c) {
  return hash_of(c.at, c.count * c.width);
}

// Python keeps the hash of a text that it has asked for once: that is as good.
static uint64_t key_of_text(const python_reader *r, const unsigned char *text) {
  enum { UNKNOWN = -1 };
  int64_t known;
  if (text == NULL) return 0;
  (void)fetch(r, text + r->layout->text_length + sizeof(uint64_t), &known,
              sizeof known);
  return known != UNKNOWN ? (uint64_t)known
                          : hash_of_text(characters_of(r, text));
}

static uint32_t character_at(const python_reader *r, characters c, size_t i) {
  uint32_t found = 0;
  (void)fetch(r, c.at + i * c.width, &found, c.width);
  return found;
}

// Returns how many bytes it takes, or 0 if |room| is less.
static size_t put_utf8(uint32_t c, char *out, size_t room) {
  size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
  if (size > room) return 0;
  for (size_t i = size - 1; i > 0; i--, c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(heads[size] | c);
  return size;
}

// A zero, which no text of the file has, is left out.
size_t python_read_text(const python_reader *reader, const python_frame *frame,
                        python_text which, char *out, size_t room) {
  const python_layout *l = reader->layout;
  uint16_t at = which == PYTHON_FILE ? l->code_file : l->code_name;
  const unsigned char *text = fetch_pointer(reader, frame->code + at);
  if (text == NULL) return 0;
  characters c = characters_of(reader, text);
  size_t length = 0;
  for (size_t i = 0; i < c.count; i++) {
    uint32_t next = character_at(reader, c, i);
    size_t size = next != 0 ? put_utf8(next, out + length, room - length) : 0;
    if (size == 0 && next != 0) break;
    length += size;
  }
  return length;
}

// ---------------------------------------------------------------------------
// Places
// ---------------------------------------------------------------------------

static uint64_t hash_of_lines(const python_reader *r,
                              const unsigned char *lines) {
  size_t size = length_of_lines(r, lines);
  return size <= LONGEST ? hash_of(lines + r->layout->bytes_begin, size) : 0;
}

uint64_t python_read_key(const python_reader *reader,
                         const python_frame *frame) {
  const python_layout *l = reader->layout;
  const unsigned char *code = frame->code;
  const unsigned char *lines = fetch_pointer(reader, code + l->code_lines);
  uint64_t key = numbers_mix((uint32_t)frame->position, (uintptr_t)code);
  key =
      numbers_mix(key, (uint32_t)fetch_int(reader, code + l->code_first_line));
  if (lines != NULL) key = numbers_mix(key, hash_of_lines(reader, lines));
  key = numbers_mix(
      key, key_of_text(reader, fetch_pointer(reader, code + l->code_file)));
  return numbers_mix(
      key, key_of_text(reader, fetch_pointer(reader, code + l->code_name)));
}

// Copied before it is read, since it is not certain to be a table.
__attribute__((noinline)) static uint32_t find_guarded(const python_reader *r,
                                                       python_line_table table,
                                                       int32_t position) {
  unsigned char copy[16384];
  if (table.size > sizeof copy || !fetch(r, table.bytes, copy, table.size))
    return 0;
  table.bytes = copy;
  return python_lines_find(&table, position);
}

static python_line_table table_of(const python_reader *r,
                                  const python_frame *frame) {
  const python_layout *l = r->layout;
  const unsigned char *lines = fetch_pointer(r, frame->code + l->code_lines);
  python_line_table table = {
      .form = l->lines,
      .first_line = fetch_int(r, frame->code + l->code_first_line)};
  if (lines == NULL) return table;
  size_t size = length_of_lines(r, lines);
  if (size > LONGEST) return table;
  table.bytes = lines + l->bytes_begin;
  table.size = size;
  return table;
}

uint32_t python_read_line(const python_reader *reader,
                          const python_frame *frame) {
  python_line_table table = table_of(reader, frame);
  return reader->guarded ? find_guarded(reader, table, frame->position)
                         : python_lines_find(&table, frame->position);
}

size_t python_read_table(const python_reader *reader, const python_frame *frame,
                         void *out, size_t size) {
  python_line_table table = table_of(reader, frame);
  (void)fetch(reader, table.bytes, out, size < table.size ? size : table.size);
  return table.size;
}

void python_read_instructions(const python_reader *reader,
                              const python_frame *frame, void *out,
                              size_t size) {
  (void)fetch(reader, frame->code + reader->layout->code_begin, out, size);
}
