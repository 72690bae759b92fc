// Mixed stacks: from the innermost call out, in one pass.
#include "record/python_stack.h"

#include <dlfcn.h>
#include <link.h>

#include "record/numbers.h"
#include "record/span.h"
#include "record/texts.h"

enum { ENTRIES = 1 << 19, ITEMS_MOST = TARN__LOG_MOST_FRAMES };

static const python_reader *reader;
static numbers frames;
static span eval;         // the function that runs frames
static span interpreter;  // the file that it is in

bool python_stack_begin(const python_reader *of, const void *function) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  reader = of;
  if (function != NULL) interpreter = span_of(function);
  if (function != NULL &&
      dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 &&
      symbol != NULL) {
    eval = (span){function, symbol->st_size};
  }
  return numbers_begin(&frames, ENTRIES);
}

void python_stack_forget(void) {
  numbers_forget(&frames);
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

__attribute__((noinline)) static uint64_t number_of_text(
    slot *mine, const python_frame *frame, python_text which) {
  char text[TARN__LOG_MOST_TEXT];
  size_t length = python_read_text(reader, frame, which, text, sizeof text);
  return texts_number(mine, text, length);
}

static void define_frame(slot *mine, uint64_t number,
                         const python_frame *frame) {
  uint64_t file = number_of_text(mine, frame, PYTHON_FILE);
  uint64_t name = number_of_text(mine, frame, PYTHON_NAME);
  if (!slots_have_room(mine, (size_t)5 * TARN__LOG_MOST_NUMBER, NULL)) return;
  unsigned char *at =
      tarn__log_put_definition(&mine->writer, TARN__LOG_FRAME, number);
  at = tarn__log_put_number(at, file);
  at = tarn__log_put_number(at, name);
  at = tarn__log_put_number(at, python_read_line(reader, frame));
  tarn__log_publish(&mine->writer, at);
}

static uint64_t number_of_frame(slot *mine, const python_frame *frame) {
  bool is_new = false;
  uint64_t number =
      numbers_find(&frames, python_read_key(reader, frame), &is_new);
  if (is_new) define_frame(mine, number, frame);
  return number;
}

// ---------------------------------------------------------------------------
// Stacks
// ---------------------------------------------------------------------------

typedef struct mixing {
  slot *mine;
  const python_stack *stack;
  int next;  // the first of |stack|'s frames that has no place yet
  uint64_t items[ITEMS_MOST];
  int count;
  uint64_t before;  // the last address
} mixing;

static void add_address(mixing *m, const void *address) {
  if (m->count == ITEMS_MOST) return;
  m->items[m->count++] = tarn__log_mixed_address((uintptr_t)address, m->before);
  m->before = (uintptr_t)address;
}

static bool add_frame(mixing *m) {
  const python_frame *frame = &m->stack->frames[m->next++];
  if (m->count < ITEMS_MOST)
    m->items[m->count++] =
        tarn__log_mixed_frame(number_of_frame(m->mine, frame));
  return !frame->is_entry && m->next < m->stack->frame_count;
}

// A call may be the last thing in a function: what returns is behind it.
static void add_call(mixing *m, void *const *at) {
  const unsigned char *call = (const unsigned char *)*at - 1;
  if (span_has(&eval, call) && m->next < m->stack->frame_count) {
    while (add_frame(m)) {
    }
  } else if (m->next == 0 || !span_has(&interpreter, call)) {
    add_address(m, *at);
  }
}

static void mix(mixing *m) {
  for (int i = 0; i < m->stack->address_count; i++)
    add_call(m, &m->stack->addresses[i]);
  while (m->next < m->stack->frame_count)
    (void)add_frame(m);
}

void python_stack_define(slot *mine, uint64_t number,
                         const python_stack *stack) {
  mixing m = {.mine = mine, .stack = stack};
  mix(&m);
  size_t most = (size_t)(m.count + 3) * TARN__LOG_MOST_NUMBER;
  if (!slots_have_room(mine, most, NULL)) return;
  unsigned char *at =
      tarn__log_put_definition(&mine->writer, TARN__LOG_MIXED_STACK, number);
  at = tarn__log_put_number(at, (uint64_t)m.count);
  for (int i = 0; i < m.count; i++)
    at = tarn__log_put_number(at, m.items[i]);
  tarn__log_publish(&mine->writer, at);
}
