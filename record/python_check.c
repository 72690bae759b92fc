// The check: file, function and line of each frame, from the innermost out, and
// the bytes that lines come from: a line may be right by chance.
#include "record/python_check.h"

#include <string.h>

#include "trace/log.h"

enum { CHECKED_MOST = 64, BYTES_MOST = 64 };

typedef struct checking {
  const python_api *api;
  const python_reader *reader;
} checking;

static bool is_text(const checking *c, const python_frame *frame,
                    python_text which, python_object *text) {
  char read[TARN__LOG_MOST_TEXT];
  size_t length = python_read_text(c->reader, frame, which, read, sizeof read);
  const char *told = c->api->utf8(text);
  return told != NULL && strnlen(told, sizeof read) == length &&
         memcmp(told, read, length) == 0;
}

static bool has_text(const checking *c, const python_frame *frame,
                     python_text which, python_object *code) {
  python_object *text =
      c->api->attribute(code, which == PYTHON_FILE ? "co_filename" : "co_name");
  if (text == NULL) return false;
  bool same = is_text(c, frame, which, text);
  c->api->release(text);
  return same;
}

// Below 1, Python says that there is no line.
static bool has_line(const checking *c, const python_frame *frame,
                     python_object *told) {
  int line = c->api->frame_line(told);
  return python_read_line(c->reader, frame) == (uint32_t)(line > 0 ? line : 0);
}

// Of the bytes |name|, |read| has the first; it has |size| in all, or so many
// as Python says if that is 0.
static bool has_bytes(const checking *c, python_object *code, const char *name,
                      const void *read, size_t size) {
  char *told = NULL;
  ptrdiff_t told_size = 0;
  python_object *bytes = c->api->attribute(code, name);
  if (bytes == NULL) return false;
  bool same = c->api->bytes(bytes, &told, &told_size) == 0 &&
              (size == 0 || (size_t)told_size == size);
  if (told_size > BYTES_MOST) told_size = BYTES_MOST;
  same = same && memcmp(told, read, (size_t)told_size) == 0;
  c->api->release(bytes);
  return same;
}

static bool has_table(const checking *c, const python_frame *frame,
                      python_object *code) {
  unsigned char read[BYTES_MOST] = {0};
  bool is_old = c->reader->layout->lines == PYTHON_LINES_9;
  size_t size = python_read_table(c->reader, frame, read, sizeof read);
  return has_bytes(c, code, is_old ? "co_lnotab" : "co_linetable", read, size);
}

static bool has_instructions(const checking *c, const python_frame *frame,
                             python_object *code) {
  unsigned char read[BYTES_MOST] = {0};
  if (c->reader->layout->code_begin == PYTHON_NOWHERE) return true;
  python_read_instructions(c->reader, frame, read, sizeof read);
  return has_bytes(c, code, "_co_code_adaptive", read, 0);
}

static bool is_frame(const checking *c, const python_frame *frame,
                     python_object *told) {
  python_object *code = c->api->frame_code(told);
  bool same = (const void *)code == frame->code &&
              has_text(c, frame, PYTHON_FILE, code) &&
              has_text(c, frame, PYTHON_NAME, code) &&
              has_table(c, frame, code) && has_instructions(c, frame, code) &&
              has_line(c, frame, told);
  c->api->release(code);
  return same;
}

// |told| is the innermost.
static bool are_frames(const checking *c, const python_frame *frames, int count,
                       python_object *told) {
  int same = 0;
  while (told != NULL && same < count && is_frame(c, &frames[same], told)) {
    python_object *back = c->api->frame_back(told);
    c->api->release(told);
    told = back;
    same++;
  }
  // The outermost is what a program calls: no other frame shares its call.
  bool is_end = count == CHECKED_MOST ||
                (told == NULL && count > 0 && frames[count - 1].is_entry);
  if (told != NULL) c->api->release(told);
  return same == count && is_end;
}

static python_verdict compare(const checking *c, void *thread) {
  python_frame frames[CHECKED_MOST];
  int count = python_read_frames(c->reader, thread, frames, CHECKED_MOST);
  python_object *told = c->api->thread_frame(thread);
  if (told == NULL) return PYTHON_RUNS_NOTHING;
  bool same = are_frames(c, frames, count, told);
  c->api->clear_error();
  return same ? PYTHON_AGREES : PYTHON_DIFFERS;
}

python_verdict python_check(const python_api *api, const python_reader *reader,
                            void *thread) {
  const checking c = {api, reader};
  bool can_hold = api->disable_collection != NULL;
  bool collected = can_hold && api->disable_collection() != 0;
  python_verdict verdict = compare(&c, thread);
  if (collected) (void)api->enable_collection();
  return verdict;
}
