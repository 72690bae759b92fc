// Lines: each table says of one stretch of code after the other how long it is
// and how far its line is from that of the one before.
#include "record/python_lines.h"

#include <stdbool.h>

// An entry of a table.
typedef struct stretch {
  int32_t bytes;
  int32_t lines;  // to be added to the line
  bool has_line;
} stretch;

// What is left of a table.
typedef struct cursor {
  const unsigned char *at;
  const unsigned char *end;
} cursor;

static int32_t take_byte(cursor *c) {
  return c->at < c->end ? *c->at++ : 0;
}

static int32_t take_signed(cursor *c) {
  return (int8_t)take_byte(c);
}

// ---------------------------------------------------------------------------
// 3.9 and 3.10: pairs of bytes
// ---------------------------------------------------------------------------

// A line holds from the address behind its step.
static int64_t find_9(cursor c, int64_t line, int32_t position) {
  for (int64_t begin = 0; c.at < c.end;) {
    begin += take_byte(&c);
    if (begin > position) break;
    line += take_signed(&c);
  }
  return line;
}

static stretch take_10(cursor *c) {
  enum { NO_LINE = -128 };
  stretch s = {.bytes = take_byte(c)};
  s.lines = take_signed(c);
  s.has_line = s.lines != NO_LINE;
  if (!s.has_line) s.lines = 0;
  return s;
}

// ---------------------------------------------------------------------------
// 3.11 on: entries of a first byte with bit 7, and others without it
// ---------------------------------------------------------------------------

static int32_t take_wide(cursor *c) {
  uint32_t value = 0;
  uint32_t byte;
  unsigned shift = 0;
  do {
    byte = (uint32_t)take_byte(c);
    if (shift < 30) value |= (byte & 0x3f) << shift;
    shift += 6;
  } while ((byte & 0x40) != 0);
  return (value & 1) != 0 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static stretch take_11(cursor *c) {
  enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
  int32_t first = take_byte(c);
  int32_t kind = (first >> 3) & 15;
  stretch s = {.bytes = ((first & 7) + 1) * 2, .has_line = kind != NONE};
  if (kind >= ONE_LINE && kind < NO_COLUMNS) s.lines = kind - ONE_LINE;
  if (kind == NO_COLUMNS || kind == LONG) s.lines = take_wide(c);
  while (c->at < c->end && (*c->at & 0x80) == 0)
    c->at++;
  return s;
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static int64_t find_stretch(cursor c, stretch (*take)(cursor *), int64_t line,
                            int32_t position) {
  for (int64_t end = 0; c.at < c.end;) {
    stretch s = take(&c);
    end += s.bytes;
    line += s.lines;
    if (position < end) return s.has_line ? line : 0;
  }
  return 0;
}

uint32_t python_lines_find(const python_line_table *table, int32_t position) {
  cursor c = {table->bytes, table->bytes + table->size};
  int64_t line = table->first_line;
  if (position >= 0) {
    line = table->form == PYTHON_LINES_9 ? find_9(c, line, position)
           : table->form == PYTHON_LINES_10
               ? find_stretch(c, take_10, line, position)
               : find_stretch(c, take_11, line, position);
  }
  return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
