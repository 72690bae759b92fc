// Raw stacks: from return addresses to offsets in mapped files.
//
// A return address is that of the instruction after the call. The address
// before it is looked up and shown: it lies within the call, and so in the
// right function and line, also if the call ends its function.
//
//   module 3    [first ....... first + bytes)     subtracts |bias|
//   frame       {file = its path, function = "+0x<address - 1 - bias>", line 0}
//   elsewhere   {file = "", function = "0x<address - 1>", line 0}
//
// Modules come and go, and several may use one range of addresses in turn.
// Stacks are resolved in order of their moments, while modules are added to
// |now| as they appear, each over earlier ones. An address outside of |now| may
// be of a module that was noticed late: |ever| has all modules, the first on
// top.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "trace/log_read.h"
#include "trace/ranges.h"

typedef struct module {
  uint64_t first;
  uint64_t size;
  uint64_t bias;
  uint64_t since;
  uint64_t path;  // TEXT
} module;

typedef struct resolver {
  tarn__trace_log_names *names;
  tarn__array order;  // tarn__trace_log_entry: raw stacks by moment
  tarn__trace_ranges now;
  tarn__trace_ranges ever;
  size_t next;  // module that has not appeared yet
} resolver;

static tarn__trace_log_entry *module_entry(const resolver *r, size_t index) {
  return (tarn__trace_log_entry *)r->names->tables[TARN__LOG_MODULES].items +
         index;
}

static size_t module_count(const resolver *r) {
  return r->names->tables[TARN__LOG_MODULES].count;
}

static module read_module(const resolver *r, size_t index) {
  module read;
  tarn__trace_log_bytes bytes =
      tarn__log_entry_bytes(r->names, module_entry(r, index));
  read.path = tarn__log_take(&bytes);
  read.first = tarn__log_take(&bytes);
  read.size = tarn__log_take(&bytes);
  read.bias = tarn__log_take(&bytes);
  read.since = tarn__log_take(&bytes);
  return read;
}

// --- modules ---------------------------------------------------------------

// Sorts modules by when they appeared.
static tarn_status sort_modules(resolver *r) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < module_count(r); i++) {
    tarn__trace_log_entry *entry = module_entry(r, i);
    module read = read_module(r, i);
    entry->number = read.since;
    status = tarn__log_names_text(r->names, read.path, &entry->value);
  }
  if (status == TARN_OK && module_count(r) != 0) {
    tarn__log_entries_sort(module_entry(r, 0), module_count(r));
  }
  return status;
}

static tarn_status lay(const resolver *r, tarn__trace_ranges *ranges,
                       size_t index) {
  module read = read_module(r, index);
  if (read.size == 0) return TARN_OK;
  tarn__trace_range_entry range = {.first = read.first,
                                   .last = read.first + (read.size - 1),
                                   .value = (uint32_t)index};
  return tarn__ranges_lay(ranges, range);
}

static tarn_status lay_all(resolver *r) {
  tarn_status status = TARN_OK;
  for (size_t i = module_count(r); status == TARN_OK && i > 0; i--)
    status = lay(r, &r->ever, i - 1);
  return status;
}

static tarn_status advance(resolver *r, uint64_t moment) {
  tarn_status status = TARN_OK;
  while (status == TARN_OK && r->next < module_count(r) &&
         module_entry(r, r->next)->number <= moment) {
    status = lay(r, &r->now, r->next++);
  }
  return status;
}

// --- stacks ----------------------------------------------------------------

static tarn_status name_frame(const resolver *r, uint64_t address,
                              tarn__trace_frame *frame, char *text,
                              size_t size) {
  tarn__trace_range_entry range;
  if (!tarn__ranges_find(&r->now, address, address, &range) &&
      !tarn__ranges_find(&r->ever, address, address, &range)) {
    snprintf(text, size, "0x%" PRIx64, address);
    return tarn__stacks_text(&r->names->history->stacks, "", 0, &frame->file);
  }
  module in = read_module(r, range.value);
  snprintf(text, size, "+0x%" PRIx64, address - in.bias);
  frame->file = module_entry(r, range.value)->value;
  return TARN_OK;
}

static tarn_status resolve_frame(const resolver *r, uint64_t address,
                                 uint32_t *out_frame) {
  char text[24];
  tarn__trace_frame frame = {0};
  tarn__trace_stacks *stacks = &r->names->history->stacks;
  tarn_status status = name_frame(r, address - 1, &frame, text, sizeof text);
  if (status == TARN_OK) {
    status = tarn__stacks_text(stacks, text, strlen(text), &frame.function);
  }
  if (status != TARN_OK) return status;
  return tarn__stacks_frame(stacks, frame, out_frame);
}

static tarn_status resolve_stack(const resolver *r,
                                 tarn__trace_log_entry *stack) {
  uint32_t numbers[TARN__LOG_MOST_FRAMES] = {0};
  uint64_t address = 0;
  tarn_status status = TARN_OK;
  tarn__trace_log_bytes bytes = tarn__log_entry_bytes(r->names, stack);
  size_t count = (size_t)tarn__log_take(&bytes);
  for (size_t i = 0; status == TARN_OK && i < count; i++) {
    address += tarn__log_unzigzag(tarn__log_take(&bytes));
    status = resolve_frame(r, address, &numbers[i]);
  }
  if (status != TARN_OK) return status;
  return tarn__stacks_stack(&r->names->history->stacks, numbers, count,
                            &stack->value);
}

// --- the whole -------------------------------------------------------------

// Puts raw stacks into |order|: their moments as numbers, |value| says which.
static tarn_status order_stacks(resolver *r) {
  const tarn__array *table = &r->names->tables[TARN__LOG_STACKS];
  const tarn__trace_log_entry *stacks = table->items;
  void *fresh = NULL;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < table->count; i++) {
    if (stacks[i].extra == 0) continue;
    status = tarn__array_grow(r->names->input->budget, &r->order, 1, &fresh);
    if (status != TARN_OK) return status;
    *(tarn__trace_log_entry *)fresh = (tarn__trace_log_entry){
        .number = stacks[i].moment, .at = stacks[i].at, .value = (uint32_t)i};
  }
  tarn__log_entries_sort(r->order.items, r->order.count);
  return status;
}

static tarn_status resolve_all(resolver *r) {
  const tarn__trace_log_entry *order = r->order.items;
  tarn__trace_log_entry *stacks = r->names->tables[TARN__LOG_STACKS].items;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < r->order.count; i++) {
    status = advance(r, order[i].number);
    if (status == TARN_OK) status = resolve_stack(r, &stacks[order[i].value]);
  }
  return status;
}

tarn_status tarn__log_resolve_raw(tarn__trace_log_names *names) {
  tarn__budget *budget = names->input->budget;
  resolver r = {.names = names, .order = TARN__ARRAY_OF(tarn__trace_log_entry)};
  tarn__ranges_init(&r.now, budget);
  tarn__ranges_init(&r.ever, budget);
  tarn_status status = order_stacks(&r);
  if (status == TARN_OK && r.order.count != 0) {
    status = sort_modules(&r);
    if (status == TARN_OK) status = lay_all(&r);
    if (status == TARN_OK) status = resolve_all(&r);
  }
  tarn__ranges_deinit(&r.ever);
  tarn__ranges_deinit(&r.now);
  tarn__array_free(budget, &r.order);
  return status;
}
