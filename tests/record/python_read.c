// The reader of frames over a thread, frames and code that are made here, by a
// layout of this test's own: also where a sanitizer looks on.
#include "record/python_read.h"

#include <stddef.h>
#include <string.h>

#include "support/run.h"

enum { CODE_TYPE = 77, OF_THREAD = 0, OF_C_STACK = 3, COMPACT = 0x20 };
enum { ASCII = 0x40, KIND_SHIFT = 2, TEXT_BYTES = 64 };

typedef struct text {
  uint64_t length;
  int64_t hash;
  uint32_t state;
  unsigned char ascii[8];
  unsigned char wide[TEXT_BYTES];
} text;

typedef struct table {
  uint64_t length;
  unsigned char bytes[16];
} table;

typedef struct code {
  uint64_t references;
  const void *type;
  const text *file;
  const text *name;
  const table *lines;
  int32_t first_line;
  unsigned char instructions[32];
} code;

typedef struct frame {
  const struct frame *back;
  const code *code;
  const unsigned char *at;
  unsigned char owner;
} frame;

typedef struct thread {
  const frame *top;
} thread;

static const python_layout layout = {
    .lines = PYTHON_LINES_11,
    .position = PYTHON_POINTER,
    .thread_frame = offsetof(thread, top),
    .holder_frame = PYTHON_NOWHERE,
    .frame_back = offsetof(frame, back),
    .frame_code = offsetof(frame, code),
    .frame_position = offsetof(frame, at),
    .frame_is_entry = PYTHON_NOWHERE,
    .frame_owner = offsetof(frame, owner),
    .code_file = offsetof(code, file),
    .code_name = offsetof(code, name),
    .code_first_line = offsetof(code, first_line),
    .code_lines = offsetof(code, lines),
    .code_begin = offsetof(code, instructions),
    .text_length = offsetof(text, length),
    .text_state = offsetof(text, state),
    .text_ascii = offsetof(text, ascii),
    .text_wide = offsetof(text, wide),
    .bytes_length = offsetof(table, length),
    .bytes_begin = offsetof(table, bytes)};

static const int type = CODE_TYPE;
static python_reader reader = {.layout = &layout, .code_type = &type};

// Two lines after the first.
static table lines = {.length = 3, .bytes = {0xe1, 0, 1}};
static table no_lines = {.length = 1, .bytes = {0xf8}};
static text file = {.length = 4, .hash = -1, .ascii = "a.py"};
static text name = {.length = 1, .hash = 5, .ascii = "f"};
static code of_program, of_interpreter;
static frame frames[4];
static thread own;

// f, called by f, called by the interpreter, called by f.
static void set_up(void) {
  file.state = name.state = COMPACT | ASCII | 1 << KIND_SHIFT;
  of_program = (code){.type = &type,
                      .file = &file,
                      .name = &name,
                      .lines = &lines,
                      .first_line = 10};
  of_interpreter = of_program;
  of_interpreter.lines = &no_lines;
  for (size_t i = 0; i < 4; i++) {
    frames[i] = (frame){.back = i < 3 ? &frames[i + 1] : NULL,
                        .code = &of_program,
                        .at = of_program.instructions + 2 * i};
  }
  frames[2].owner = OF_C_STACK;
  frames[2].code = NULL;
  own.top = frames;
}

static int read_frames(python_frame *out, int most) {
  return python_read_frames(&reader, &own, out, most);
}

TEST(frames_from_the_innermost_on) {
  python_frame read[8];
  ck_assert_int_eq(read_frames(read, 8), 3);
  ck_assert_int_eq(read[0].position, 0);
  ck_assert_int_eq(read[1].position, 2);
  ck_assert_int_eq(read[2].position, 6);
  ck_assert(!read[0].is_entry);
  ck_assert(read[1].is_entry);
  ck_assert_uint_eq(python_read_line(&reader, &read[0]), 12);
  ck_assert_uint_eq(python_read_line(&reader, &read[2]), 0);
  ck_assert_int_eq(read_frames(read, 2), 2);
}

TEST(frames_of_the_interpreter_itself_are_none) {
  python_frame read[8];
  frames[0].code = &of_interpreter;
  ck_assert_int_eq(read_frames(read, 8), 2);
  ck_assert_int_eq(read[0].position, 2);
}

TEST(no_frames) {
  python_frame read[8];
  own.top = NULL;
  ck_assert_int_eq(read_frames(read, 8), 0);
}

// What cannot be: it ends.
TEST(what_is_no_code_and_a_ring) {
  python_frame read[8];
  int other = 0;
  code no_code = of_program;
  no_code.type = &other;
  frames[1].code = &no_code;
  ck_assert_int_eq(read_frames(read, 8), 1);
  frames[0].back = frames;
  ck_assert_int_eq(read_frames(read, 8), 8);
  frames[0].owner = OF_C_STACK;
  ck_assert_int_eq(read_frames(read, 8), 0);
}

static const char *read_text(python_text which, size_t room) {
  static char out[TEXT_BYTES + 1];
  const python_frame f = {.code = (const unsigned char *)&of_program};
  out[python_read_text(&reader, &f, which, out, room)] = '\0';
  return out;
}

static void set_wide(unsigned width, size_t length, const void *bytes) {
  name.state = COMPACT | width << KIND_SHIFT;
  name.length = length;
  memcpy(name.wide, bytes, length * width);
}

TEST(texts_of_each_width) {
  static const uint16_t two[] = {0xe4, 0x540d, 'x'};
  static const uint32_t four[] = {0x1f600, 0x7ff, 0x800, 0};
  ck_assert_str_eq(read_text(PYTHON_FILE, TEXT_BYTES), "a.py");
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "f");
  set_wide(1, 3, "\xe4z\xff");
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "äzÿ");
  set_wide(2, 3, two);
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "ä名x");
  set_wide(4, 4, four);
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES),
                   "\xf0\x9f\x98\x80\xdf\xbf\xe0\xa0\x80");
}

// No character is cut in two.
TEST(texts_end_where_room_ends) {
  static const uint16_t two[] = {0xe4, 0x540d, 'x'};
  ck_assert_str_eq(read_text(PYTHON_FILE, 3), "a.p");
  set_wide(2, 3, two);
  ck_assert_str_eq(read_text(PYTHON_NAME, 4), "ä");
  ck_assert_str_eq(read_text(PYTHON_NAME, 5), "ä名");
  ck_assert_str_eq(read_text(PYTHON_NAME, 0), "");
}

TEST(texts_of_another_form_are_empty) {
  name.state &= ~(uint32_t)COMPACT;
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "");
  set_wide(4, 1, "abc");
  name.state = COMPACT | 3 << KIND_SHIFT;
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "");
  name.state = COMPACT | 1 << KIND_SHIFT;
  name.length = UINT64_MAX;
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "");
  of_program.name = NULL;
  ck_assert_str_eq(read_text(PYTHON_NAME, TEXT_BYTES), "");
}

static uint64_t key_at(int32_t position) {
  const python_frame f = {.code = (const unsigned char *)&of_program,
                          .position = position};
  return python_read_key(&reader, &f);
}

// Whatever changes at one address, each time by the least that it can.
TEST(keys_differ_with_all_that_is_said) {
  uint64_t key = key_at(4);
  ck_assert_uint_eq(key_at(4), key);
  ck_assert_uint_ne(key_at(2), key);
  of_program.first_line++;
  ck_assert_uint_ne(key_at(4), key);
  of_program.first_line--;
  for (size_t i = 0; i < lines.length; i++) {
    lines.bytes[i] ^= 0x80;
    ck_assert_uint_ne(key_at(4), key);
    lines.bytes[i] ^= 0x80;
  }
  for (size_t i = 0; i < file.length; i++) {
    file.ascii[i] ^= 1;
    ck_assert_uint_ne(key_at(4), key);
    file.ascii[i] ^= 1;
  }
  name.hash ^= 1;
  ck_assert_uint_ne(key_at(4), key);
  name.hash ^= 1;
  ck_assert_uint_eq(key_at(4), key);
}

// Pointers into nowhere are read as nothing.
TEST(a_guarded_reader_has_no_faults) {
  python_frame read[8];
  python_reader guarded = reader;
  guarded.guarded = true;
  if (!python_read_is_guarded()) {
    note_skipped("guarded reads", "process_vm_readv is forbidden here");
    return;
  }
  ck_assert_int_eq(python_read_frames(&guarded, &own, read, 8), 3);
  ck_assert_uint_eq(python_read_line(&guarded, &read[0]), 12);
  of_program.lines = (const table *)(uintptr_t)8;
  ck_assert_uint_eq(python_read_line(&guarded, &read[0]), 0);
  of_program.file = (const text *)(UINTPTR_MAX / 4);
  char out[8];
  ck_assert_uint_eq(
      python_read_text(&guarded, &read[0], PYTHON_FILE, out, sizeof out), 0);
  frames[0].code = (const code *)(uintptr_t)4096;
  ck_assert_int_eq(python_read_frames(&guarded, &own, read, 8), 0);
  own.top = (const frame *)(UINTPTR_MAX / 4);
  ck_assert_int_eq(python_read_frames(&guarded, &own, read, 8), 0);
}

FIXTURE(set_up, NULL);
