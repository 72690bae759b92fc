// Runs a pickle: its opcodes one after the other, from the first byte to the
// final STOP.
//
// A first pass over the file counts what the tree needs, so that no array has
// to grow and be copied.
#include <assert.h>

#include "base/status.h"
#include "trace/pickle_machine.h"

enum { FIRST_CELL = 1 };

// --- running ---------------------------------------------------------------

// The opcode at byte |at|, with its whole argument inside the file.
static inline tarn_status decode(const tarn__trace_pickle *tree, size_t at,
                                 tarn__trace_instruction *out_step) {
  if (at >= tree->size) {
    return tarn__pickle_corrupt(tree, at, "the file ends before STOP");
  }
  const tarn__trace_opcode *code = &tarn__opcodes[tree->bytes[at]];
  if (code->name == NULL) {
    return tarn__pickle_corrupt(tree, at, "0x%02x is not an opcode",
                                tree->bytes[at]);
  }
  size_t left = tree->size - at - 1;
  *out_step = (tarn__trace_instruction){.code = code,
                                        .at = at,
                                        .argument = at + 1 + code->counted,
                                        .size = code->fixed};
  if (left >= (size_t)code->fixed + code->counted) {
    if (code->counted == 0) return TARN_OK;
    out_step->size =
        (size_t)tarn__pickle_little(tree->bytes + at + 1, code->counted);
    if (out_step->size <= left - code->counted) return TARN_OK;
  }
  return tarn__pickle_corrupt(tree, at, "the file ends within %s", code->name);
}

static tarn_status run(tarn__trace_machine *m) {
  size_t at = 0;
  while (!m->stopped) {
    tarn__trace_instruction step = {0};
    tarn_status status = decode(m->tree, at, &step);
    if (status != TARN_OK) return status;
    assert(step.code != NULL);
    status = step.code->act(m, &step);
    if (status != TARN_OK) return status;
    at = step.argument + step.size;
  }
  if (at == m->tree->size) return TARN_OK;
  return tarn__pickle_corrupt(m->tree, at, "%zu bytes after STOP",
                              m->tree->size - at);
}

// Counts the needs of the file. Stops at damage, which running will report.
static tarn__trace_needs count_needs(const tarn__trace_pickle *tree) {
  tarn__trace_needs sum = {.cells = FIRST_CELL};
  size_t at = 0;
  while (at < tree->size) {
    const tarn__trace_opcode *code = &tarn__opcodes[tree->bytes[at]];
    size_t left = tree->size - at - 1;
    size_t size = (size_t)code->fixed + code->counted;
    if (code->name == NULL || size > left) break;
    tarn__opcode_needs(code, &sum);
    at += 1 + size;
    if (code->counted == 0) continue;
    uint64_t text =
        tarn__pickle_little(tree->bytes + at - code->counted, code->counted);
    if (text > left - size) break;
    at += (size_t)text;
  }
  return sum;
}

static tarn_status make_room(tarn__trace_pickle *tree) {
  tarn__trace_needs sum = count_needs(tree);
  tarn_status status =
      tarn__array_make(tree->budget, &tree->known, TARN__PICKLE_KNOWN);
  if (status == TARN_OK) {
    status =
        tarn__array_reserve(tree->budget, &tree->containers, sum.containers);
  }
  return status == TARN_OK
             ? tarn__array_reserve(tree->budget, &tree->cells, sum.cells)
             : status;
}

static tarn_status begin(tarn__trace_pickle *tree) {
  void *unused = NULL;
  if (tree->size == 0) {
    return tarn__pickle_corrupt(tree, 0, "the file is empty");
  }
  if (tree->size > TARN__PICKLE_MOST) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: %zu bytes; pickles of at most %zu are read",
                      tree->name, tree->size, TARN__PICKLE_MOST);
  }
  if (tree->bytes[0] != 0x80) {
    return tarn__pickle_corrupt(
        tree, 0, "0x%02x is no PROTO: not a pickle of protocol 2 to 5",
        tree->bytes[0]);
  }
  tarn_status status = make_room(tree);
  if (status != TARN_OK) return status;
  return tarn__array_grow(tree->budget, &tree->cells, FIRST_CELL, &unused);
}

tarn_status tarn__pickle_load(tarn__trace_pickle *pickle, tarn__budget *budget,
                              const char *name, const void *bytes,
                              size_t size) {
  *pickle = (tarn__trace_pickle){
      .budget = budget,
      .name = name,
      .bytes = bytes,
      .size = size,
      .cells = TARN__ARRAY_OF(tarn__trace_pickle_value),
      .containers = TARN__ARRAY_OF(tarn__trace_pickle_container),
      .known = TARN__ARRAY_OF(tarn__trace_pickle_known)};
  tarn__trace_machine m = {.tree = pickle,
                           .stack = TARN__ARRAY_OF(tarn__trace_pickle_value),
                           .marks = TARN__ARRAY_OF(uint32_t),
                           .memo = TARN__ARRAY_OF(tarn__trace_pickle_value)};
  tarn_status status = begin(pickle);
  if (status == TARN_OK) status = run(&m);
  tarn__array_free(budget, &m.memo);
  tarn__array_free(budget, &m.marks);
  tarn__array_free(budget, &m.stack);
  return status;
}

void tarn__pickle_deinit(tarn__trace_pickle *pickle) {
  tarn__array_free(pickle->budget, &pickle->known);
  tarn__array_free(pickle->budget, &pickle->containers);
  tarn__array_free(pickle->budget, &pickle->cells);
}
