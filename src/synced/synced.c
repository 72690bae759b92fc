// Creating and destroying buffers and views, and their state at a place.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/access.h"
#include "synced/protect.h"
#include "synced/sides.h"

static const uint32_t ALL_FLAGS = TARN_SYNCED_PROTECT | TARN_SYNCED_NO_PROTECT;

// --- options -----------------------------------------------------------------

static tarn_status check_tag(tarn_tag tag) {
  bool known =
      tag == 0 || strcmp(tarn_pool_tag_name(tag), tarn_pool_tag_name(0)) != 0;
  return known ? TARN_OK
               : tarn__fail(TARN_E_INVALID,
                            "synced options: tag %u does not exist", tag);
}

static tarn_status check_options(const tarn_synced_options *options) {
  if (options->align != 0 && !tarn_is_power_of_two(options->align)) {
    return tarn__fail(TARN_E_INVALID,
                      "synced options: align %zu is not a power of two",
                      options->align);
  }
  uint32_t flags = options->flags;
  if ((flags & ~ALL_FLAGS) != 0 || (flags & ALL_FLAGS) == ALL_FLAGS) {
    return tarn__fail(TARN_E_INVALID,
                      "synced options: unknown or contradictory flags 0x%x",
                      flags);
  }
  return check_tag(options->tag);
}

// A device with copy streams asks buffers before it closes.
static tarn_status greet(tarn_device *device) {
  tarn__synced_copy_streams *copy_streams = NULL;
  return device != NULL ? tarn__copy_streams_of(device, &copy_streams)
                        : TARN_OK;
}

// The fields that the caller's struct has; the others are 0.
static tarn_status read_options(const tarn_synced_options *given,
                                tarn_synced_options *out) {
  size_t size = 0;
  *out = (tarn_synced_options){.struct_size = sizeof *out};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_synced_options, flags),
                         sizeof *out, &size)) {
    return tarn__fail(TARN_E_INVALID, "synced options: struct_size");
  }
  memcpy(out, given, size);
  out->struct_size = sizeof *out;
  TARN__TRY(check_options(out));
  return greet(out->device);
}

// --- the core ----------------------------------------------------------------

// Cannot fail.
static void settle(tarn__synced_core *core, size_t size,
                   const tarn_synced_options *options) {
  core->generation = tarn__os_generation();
  core->id = tarn__registry_number();
  core->on_close = tarn__core_on_close;
  core->size = size;
  core->align = options->align;
  core->tag = options->tag;
  core->device = options->device;
  core->protect = tarn__protect_default(options->flags);
  core->slow = core->protect;
  core->handles = 1;
  tarn__biased_lock_init(&core->lock);
  tarn_list_init(&core->accesses);
  tarn__spans_init(&core->spans, size);
}

static void free_core(tarn__synced_core *core) {
  tarn__spans_deinit(&core->spans);
  tarn__timelines_deinit(&core->timelines);
  tarn__sides_deinit(core);
  tarn__host_free_text(core->name);
  tarn__host_free_array(core->losses,
                        core->losses != NULL ? TARN__MOST_LOSSES : 0,
                        sizeof *core->losses);
  tarn__host_free(core, sizeof *core);
}

static tarn_status create_core(size_t size, const tarn_synced_options *options,
                               tarn__synced_core **out_core) {
  tarn__synced_core *core = tarn__host_alloc(sizeof *core);
  *out_core = NULL;
  if (core == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__sides_init(core);
  if (status == TARN_OK && options->name != NULL) {
    core->name = tarn__host_text(options->name);
    if (core->name == NULL) status = TARN_E_NOMEM;
  }
  if (status != TARN_OK) {
    free_core(core);
    return status;
  }
  settle(core, size, options);
  *out_core = core;
  return TARN_OK;
}

// --- making ------------------------------------------------------------------

static tarn_synced *create_handle(tarn__synced_core *core, size_t offset,
                                  size_t size) {
  tarn_synced *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return NULL;
  *made = (tarn_synced){.core = core, .offset = offset, .size = size};
  return made;
}

tarn_status tarn_synced_create(size_t size, const tarn_synced_options *options,
                               tarn_synced **out_buffer) {
  tarn_synced_options known;
  tarn__synced_core *core = NULL;
  if (out_buffer == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  *out_buffer = NULL;
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(read_options(options, &known));
  tarn_synced *made = create_handle(NULL, 0, size);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = create_core(size, &known, &core);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  made->core = core;
  tarn__registry_add(core);
  tarn__synced_tell_all(core, TARN_SYNCED_CREATED, TARN_HOST);
  *out_buffer = made;
  return TARN_OK;
}

tarn_status tarn_synced_view(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_synced **out_view) {
  size_t start = 0;
  size_t end = 0;
  if (out_view == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  *out_view = NULL;
  TARN__TRY(tarn__synced_range(buffer, offset, size, &start, &end));
  tarn_synced *made = create_handle(buffer->core, start, end - start);
  if (made == NULL) return TARN_E_NOMEM;
  tarn__core_enter(buffer->core);
  buffer->core->handles++;
  tarn__core_leave(buffer->core);
  *out_view = made;
  return TARN_OK;
}

size_t tarn_synced_size(const tarn_synced *buffer) {
  return buffer != NULL ? buffer->size : 0;
}

// --- ending ------------------------------------------------------------------

// An access begun through |buffer|. With the lock.
static const tarn_access *open_access_of(const tarn_synced *buffer) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &buffer->core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (access->buffer == buffer) return access;
  }
  return NULL;
}

// Releases a handle; |*out_last|: it was the last. If not, another thread may
// release the last handle as soon as the lock is free, so there is no event
// then.
static tarn_status let_go(tarn_synced *buffer, bool *out_last) {
  tarn__synced_core *core = buffer->core;
  tarn_status status = TARN_OK;
  tarn__core_enter(core);
  const tarn_access *open = open_access_of(buffer);
  if (open != NULL) {
    status = tarn__access_is_in_the_way(core, open, "it cannot be destroyed");
  } else {
    core->handles--;
  }
  *out_last = core->handles == 0;
  tarn__biased_lock_leave(&core->lock);
  return status;
}

static void give_back(tarn__synced_core *core, tarn__failure *first) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    tarn__core_enter(core);
    tarn__synced_side memory = tarn__side_detach(core, i);
    tarn__core_leave(core);
    tarn__failure_note(first, tarn__side_release(core, &memory));
  }
}

// No other thread knows the buffer now. Without host memory for the wait,
// streams are not waited for.
static tarn_status end_last(tarn__synced_core *core) {
  tarn__registry_remove(core);
  tarn__core_enter(core);
  tarn_status rested = tarn__side_rest(core, TARN__NO_SIDE, 0, core->size);
  tarn__core_leave(core);
  tarn__failure first = tarn__failure_of(rested);
  tarn__outside_sync_back(core, &first);
  give_back(core, &first);
  tarn__synced_tell_all(core, TARN_SYNCED_DESTROYED, TARN_HOST);
  free_core(core);
  return tarn__failure_tell(&first);
}

// The lock may be held, and the condition waited for, by threads that do not
// exist in the child: neither is touched. What such a thread was changing is
// left behind, half changed as it is.
static void end_after_fork(tarn__synced_core *core) {
  if (tarn__biased_lock_is_held(&core->lock) || --core->handles > 0) return;
  tarn__registry_remove(core);
  free_core(core);
}

tarn_status tarn_synced_destroy(tarn_synced *buffer) {
  if (buffer == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  tarn_status status = TARN_OK;
  tarn__synced_core *core = buffer->core;
  bool last = false;
  if (core->generation != tarn__os_generation()) {
    end_after_fork(core);
  } else {
    TARN__TRY(let_go(buffer, &last));
    if (last) status = end_last(core);
  }
  tarn__host_free(buffer, sizeof *buffer);
  return status;
}

void tarn_synced_destroy_counted(void *buffer) {
  if (tarn_synced_destroy(buffer) == TARN_OK) return;
  tarn__log(TARN_LOG_WARN, "a buffer whose last view is gone: %s",
            tarn_last_error());
}

// --- the state at a place ----------------------------------------------------

static void add_span(tarn_synced_info *info, const tarn__synced_span *span,
                     uint64_t bit, size_t size) {
  if (!span->written) info->unwritten += size;
  if (tarn__span_is_lost(span)) info->lost += size;
  if ((span->valid & bit) == 0) return;
  info->valid += size;
  if ((tarn__span_pending(span) & bit) != 0) info->pending += size;
}

static void add_spans(tarn_synced_info *info, const tarn__synced_core *core,
                      uint64_t bit, tarn__synced_run range) {
  size_t at = range.start;
  tarn__spans_each (span, &core->spans, range.start, range.end) {
    size_t end = tarn__lesser(span->end, range.end);
    add_span(info, span, bit, end - at);
    at = end;
  }
}

static void add_accesses(tarn_synced_info *info, const tarn__synced_core *core,
                         tarn__synced_run range) {
  const tarn_list *node = NULL;
  if (tarn__access_in(core, TARN__NO_SIDE, range.start, range.end) == NULL) {
    return;
  }
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (!tarn__access_meets(access, range.start, range.end)) continue;
    if ((access->mode & TARN_READ_WRITE) == TARN_READ) {
      info->readers++;
    } else {
      info->writers++;
    }
  }
}

static void add_memory(tarn_synced_info *info, const tarn__synced_core *core,
                       const tarn__synced_side *side) {
  if (!tarn__side_has_memory(side)) return;
  info->memory = core->size;
  info->borrowed = side->outside && side->deleter == NULL;
}

static size_t count_own(const tarn_synced *buffer) {
  const tarn_list *node = NULL;
  size_t count = 0;
  tarn_list_for_each (node, &buffer->core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (access->buffer == buffer) count++;
  }
  return count;
}

// With the lock.
static tarn_synced_info describe(const tarn__synced_core *core,
                                 tarn_place place, tarn__synced_run range) {
  tarn_synced_info info = {.range_count = core->spans.map.count};
  uint32_t side = tarn__side_find(core, place);
  uint64_t bit = side != TARN__NO_SIDE ? tarn__side_bit(side) : 0;
  if (side != TARN__NO_SIDE) add_memory(&info, core, &core->sides[side]);
  add_spans(&info, core, bit, range);
  add_accesses(&info, core, range);
  return info;
}

tarn_status tarn_synced_query(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, tarn_synced_info *out_info) {
  size_t known = 0;
  tarn__synced_run range;
  TARN__TRY(tarn__clear_struct("synced: information", out_info,
                               TARN__SIZE_UP_TO(tarn_synced_info, own_accesses),
                               sizeof *out_info, &known));
  TARN__TRY(tarn__synced_range(buffer, offset, size, &range.start, &range.end));
  TARN__TRY(tarn__place_check(place));
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__core_settle(core);
  tarn_synced_info info = describe(core, place, range);
  info.own_accesses = count_own(buffer);
  tarn__core_leave(core);
  info.struct_size = known;
  memcpy(out_info, &info, known);
  return TARN_OK;
}
