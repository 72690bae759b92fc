// Layouts: tables for 3.9 to 3.12, and what 3.13 tells of itself.
#include "record/python_layout.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

enum { FIRST = 9, LAST = 12, TELLS = 13 };

static const python_layout layouts[] = {
    [9 - FIRST] = {.lines = PYTHON_LINES_9,
                   .position = PYTHON_BYTES,
                   .thread_frame = 24,
                   .holder_frame = PYTHON_NOWHERE,
                   .frame_back = 24,
                   .frame_code = 32,
                   .frame_position = 104,
                   .frame_is_entry = PYTHON_NOWHERE,
                   .frame_owner = PYTHON_NOWHERE,
                   .code_file = 104,
                   .code_name = 112,
                   .code_first_line = 40,
                   .code_lines = 120,
                   .code_begin = PYTHON_NOWHERE,
                   .text_length = 16,
                   .text_state = 32,
                   .text_ascii = 48,
                   .text_wide = 72,
                   .bytes_length = 16,
                   .bytes_begin = 32},
    [10 - FIRST] = {.lines = PYTHON_LINES_10,
                    .position = PYTHON_UNITS,
                    .thread_frame = 24,
                    .holder_frame = PYTHON_NOWHERE,
                    .frame_back = 24,
                    .frame_code = 32,
                    .frame_position = 96,
                    .frame_is_entry = PYTHON_NOWHERE,
                    .frame_owner = PYTHON_NOWHERE,
                    .code_file = 104,
                    .code_name = 112,
                    .code_first_line = 40,
                    .code_lines = 120,
                    .code_begin = PYTHON_NOWHERE,
                    .text_length = 16,
                    .text_state = 32,
                    .text_ascii = 48,
                    .text_wide = 72,
                    .bytes_length = 16,
                    .bytes_begin = 32},
    [11 - FIRST] = {.lines = PYTHON_LINES_11,
                    .position = PYTHON_POINTER,
                    .thread_frame = 56,
                    .holder_frame = 8,
                    .frame_back = 48,
                    .frame_code = 32,
                    .frame_position = 56,
                    .frame_is_entry = 68,
                    .frame_owner = PYTHON_NOWHERE,
                    .code_file = 112,
                    .code_name = 120,
                    .code_first_line = 72,
                    .code_lines = 136,
                    .code_begin = 184,
                    .text_length = 16,
                    .text_state = 32,
                    .text_ascii = 48,
                    .text_wide = 72,
                    .bytes_length = 16,
                    .bytes_begin = 32},
    [12 - FIRST] = {.lines = PYTHON_LINES_11,
                    .position = PYTHON_POINTER,
                    .thread_frame = 56,
                    .holder_frame = 0,
                    .frame_back = 8,
                    .frame_code = 0,
                    .frame_position = 56,
                    .frame_is_entry = PYTHON_NOWHERE,
                    .frame_owner = 70,
                    .code_file = 112,
                    .code_name = 120,
                    .code_first_line = 68,
                    .code_lines = 136,
                    .code_begin = 192,
                    .text_length = 16,
                    .text_state = 32,
                    .text_ascii = 40,
                    .text_wide = 56,
                    .bytes_length = 16,
                    .bytes_begin = 32},
};

// ---------------------------------------------------------------------------
// 3.13
// ---------------------------------------------------------------------------

// The beginning of _PyRuntime, as internal/pycore_runtime.h of 3.13 has it.
typedef struct debug_offsets {
  char cookie[8];
  uint64_t version;  // 0x030d....
  uint64_t free_threaded;
  uint64_t runtime[3];
  uint64_t interpreter[13];
  struct {
    uint64_t size, prev, next, interp, frame, id, native_id, chunk, status;
  } thread;
  struct {
    uint64_t size, previous, executable, instruction, locals, owner;
  } frame;
  struct {
    uint64_t size, file, name, qualified, lines, first_line, arguments;
    uint64_t names_of_locals, kinds_of_locals, begin;
  } code;
  uint64_t object[2], type[4], tuple[3], list[3], dict[3], real[2], whole[3];
  struct {
    uint64_t size, length, begin;
  } bytes;
  struct {
    uint64_t size, state, length, ascii_size;
  } text;
  uint64_t collector[2];
} debug_offsets;

static python_layout told;

static const python_layout *take_told(const debug_offsets *d) {
  enum { WIDE_MORE = 16 };  // the length in UTF-8, and where that is
  told =
      (python_layout){.lines = PYTHON_LINES_11,
                      .position = PYTHON_POINTER,
                      .thread_frame = (uint16_t)d->thread.frame,
                      .holder_frame = PYTHON_NOWHERE,
                      .frame_back = (uint16_t)d->frame.previous,
                      .frame_code = (uint16_t)d->frame.executable,
                      .frame_position = (uint16_t)d->frame.instruction,
                      .frame_is_entry = PYTHON_NOWHERE,
                      .frame_owner = (uint16_t)d->frame.owner,
                      .code_file = (uint16_t)d->code.file,
                      .code_name = (uint16_t)d->code.name,
                      .code_first_line = (uint16_t)d->code.first_line,
                      .code_lines = (uint16_t)d->code.lines,
                      .code_begin = (uint16_t)d->code.begin,
                      .text_length = (uint16_t)d->text.length,
                      .text_state = (uint16_t)d->text.state,
                      .text_ascii = (uint16_t)d->text.ascii_size,
                      .text_wide = (uint16_t)(d->text.ascii_size + WIDE_MORE),
                      .bytes_length = (uint16_t)d->bytes.length,
                      .bytes_begin = (uint16_t)d->bytes.begin};
  return &told;
}

static const python_layout *ask(const debug_offsets *d, const char **out_why) {
  *out_why = "it does not tell where it keeps its frames";
  if (d == NULL || memcmp(d->cookie, "xdebugpy", sizeof d->cookie) != 0 ||
      d->version >> 16 != 0x030d) {
    return NULL;
  }
  *out_why = "it was built to run without a global lock";
  return d->free_threaded == 0 ? take_told(d) : NULL;
}

const python_layout *python_layout_find(const char *version,
                                        const void *runtime,
                                        const char **out_why) {
  long minor =
      strncmp(version, "3.", 2) == 0 ? strtol(version + 2, NULL, 10) : 0;
  if (minor == TELLS) return ask(runtime, out_why);
  *out_why = "it is not one of 3.9 to 3.13";
  return minor >= FIRST && minor <= LAST ? &layouts[minor - FIRST] : NULL;
}
