// Gather and scatter by the kernels of rows.cl, queued or at once.
//
//   addresses ──find──> places ──choose──> a program and the arguments
//   begin ──> a launch for each part of the indices and chunk ──> end
//
// A table in one chunk is an argument of the kernel. One in several chunks with
// pointers is an array of addresses, among which the kernel searches, and the
// driver is told which blocks they are in. Where a chunk is a buffer without an
// address, each chunk has a launch of its own, which passes over other rows.
//
// Bad indices are found by the kernels, and told by queue.c.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "common/rows.h"
#include "opencl.h"
#include "program.h"

_Static_assert(TARN__OPENCL_GATHER == (int)TARN__ROWS_GATHER &&
                   TARN__OPENCL_SCATTER == (int)TARN__ROWS_SCATTER &&
                   TARN__OPENCL_SCATTER_ADD == (int)TARN__ROWS_SCATTER_ADD,
               "kernels know actions by number");

enum {
  PART_MOST = 1 << 30,     // indices of a launch
  GROUP = 64,              // work items of a group, where they share rows
  SHARE_LEAST = 32 << 10,  // bytes that are worth a worker
  SHARES = 8,              // of a gather for each unit, which are not all as
                           // fast
  ITEMS_GATHER = 1024,     // for each unit, where they share rows
  ITEMS_SCATTER = 512,     // fewer, since each reads all indices
  WORKERS_MOST = 64,       // the same on processors
  STREAM_FROM = 4 << 20,   // bytes that a cache had better not keep
  LINE = 64,               // of a cache
};

typedef tarn__opencl_device opencl;
typedef tarn__opencl_span span;
typedef tarn__opencl_rows_args args;

// Arguments of the kernel, in order.
enum { ARG_TABLE, ARG_DENSE, ARG_INDICES, ARG_CHUNKS, ARG_FAULT, ARG_ARGS };

// How the table is reached.
typedef enum way {
  WAY_NONE,    // no row has bytes
  WAY_ONE,     // it is in one chunk
  WAY_SEARCH,  // kernels search among addresses
  WAY_EACH,    // a launch for each chunk
} way;

typedef struct call {
  const tarn_rows *rows;
  tarn__rows_action action;
  opencl *device;
  bool solo;  // a work item moves whole rows
  span dense;
  span indices;
  span one;      // |chunks| of a table in one
  span *chunks;  // of the table; the method of an empty one is NONE
  way way;
  size_t unit;  // bytes that move at a time; 0: elements are converted or added
  args args;
  cl_mem faults;
  cl_mem addresses;  // WAY_SEARCH: chunks, for the kernel
  tarn__opencl_kernel kernel;
} call;

static const tarn__opencl_driver *driver(void) {
  return tarn__opencl_driver_get();
}

// --- memory ----------------------------------------------------------------

static tarn_status find(const call *c, const char *what, tarn_addr address,
                        size_t size, span *out) {
  if (!tarn__opencl_find(c->device, address, size, out)) return TARN_E_INVALID;
  bool is_mapped = out->method == TARN__OPENCL_MAPPED;
  if (!is_mapped && out->method != TARN__OPENCL_NONE) return TARN_OK;
  return tarn__text_fail(
      TARN_E_INVALID, "kernels do not reach the %s at 0x%" PRIx64 ": %s", what,
      address,
      is_mapped ? "memory of the host that is mapped for copies"
                : "memory that the device does not know");
}

// Bytes from the first of |count| rows to the end of the last.
static size_t extent(size_t count, size_t stride, size_t bytes) {
  return (count - 1) * stride + bytes;
}

// The bytes of chunk |i| in which there may be rows.
static size_t used_of(const tarn_rows *rows, size_t i) {
  const tarn_reference *table = &rows->table;
  size_t end =
      rows->table_offset + extent(rows->table_count, rows->table_stride,
                                  tarn__rows_table_bytes(rows));
  size_t begin = table->offsets[i];
  size_t here = table->offsets[i + 1] - begin;
  if (begin >= end) return 0;
  return here < end - begin ? here : end - begin;
}

static tarn_status find_chunks(call *c) {
  const tarn_rows *rows = c->rows;
  size_t buffers = 0;
  for (size_t i = 0; i < rows->table.count; i++) {
    size_t used = used_of(rows, i);
    if (used == 0) continue;
    TARN__TRY(find(c, "table", rows->table.chunks[i], used, &c->chunks[i]));
    if (c->chunks[i].method == TARN__OPENCL_WINDOW) buffers++;
  }
  c->way = rows->table.count == 1 ? WAY_ONE
           : buffers != 0         ? WAY_EACH
                                  : WAY_SEARCH;
  return TARN_OK;
}

static tarn_status find_table(call *c) {
  const tarn_rows *rows = c->rows;
  c->chunks = &c->one;
  if (rows->table_count == 0 || rows->width == 0) return TARN_OK;
  if (rows->table.count != 1) {
    c->chunks = tarn__host_array(rows->table.count, sizeof(span));
    if (c->chunks == NULL) {
      return tarn__text_fail(TARN_E_NOMEM, "no host memory for %zu chunks",
                             rows->table.count);
    }
  }
  return find_chunks(c);
}

static tarn_status find_all(call *c) {
  const tarn_rows *rows = c->rows;
  size_t index = tarn_dtype_size(rows->index_dtype);
  TARN__TRY(find(c, "indices", rows->indices, rows->index_count * index,
                 &c->indices));
  if (rows->width != 0) {
    size_t size = extent(rows->index_count, rows->dense_stride,
                         tarn__rows_dense_bytes(rows));
    TARN__TRY(find(c, "dense rows", rows->dense, size, &c->dense));
  }
  return find_table(c);
}

// --- the kind of rows ------------------------------------------------------

static bool is_float(tarn_dtype dtype) {
  return dtype <= TARN_DTYPE_BF16;
}

// Whether elements of the two are the same bytes.
static bool is_same(tarn_dtype a, tarn_dtype b) {
  bool integers = !is_float(a) && !is_float(b);
  return a == b || (integers && tarn_dtype_size(a) == tarn_dtype_size(b));
}

// A number that has the powers of two of all addresses of rows. Of a buffer the
// offset counts, since it begins where the driver wants it.
static uint64_t align_bits(const span *s) {
  return s->method == TARN__OPENCL_WINDOW ? s->offset : s->address;
}

static uint64_t table_bits(const call *c) {
  const tarn_rows *rows = c->rows;
  uint64_t bits = rows->table_offset | rows->table_stride;
  for (size_t i = 0; i < rows->table.count && c->way != WAY_NONE; i++) {
    if (c->chunks[i].method == TARN__OPENCL_NONE) continue;
    bits |= align_bits(&c->chunks[i]) - rows->table.offsets[i];
  }
  return bits;
}

static uint64_t dense_bits(const call *c) {
  return align_bits(&c->dense) | c->rows->dense_stride;
}

static uint64_t access_of(tarn_dtype dtype, uint64_t bits) {
  size_t size = tarn_dtype_size(dtype);
  return bits % size == 0 ? size : size | TARN__OPENCL_ROWS_BYTES;
}

// Units are as wide as addresses and rows allow.
static size_t unit_of(const call *c) {
  uint64_t bits =
      table_bits(c) | dense_bits(c) | tarn__rows_table_bytes(c->rows);
  size_t widest = c->solo ? 8 : 16;
  while (widest > 1 && bits % widest != 0)
    widest /= 2;
  return widest;
}

static bool gathers(const call *c) {
  return c->action == TARN__ROWS_GATHER;
}

// Rows that are many and lines do not go through caches, on processors.
static bool is_streamed(const call *c) {
  if (!c->solo || c->unit != 8 || c->args.units == 0) return false;
  size_t bytes = tarn__rows_table_bytes(c->rows);
  bool is_much = (c->rows->flags & TARN_ROWS_PAST_CACHES) != 0 ||
                 c->rows->index_count > STREAM_FROM / bytes;
  uint64_t bits = gathers(c) ? dense_bits(c) : table_bits(c);
  return is_much && (bits | bytes) % LINE == 0;
}

static void describe_rows(call *c) {
  const tarn_rows *rows = c->rows;
  args *a = &c->args;
  bool moves = c->action != TARN__ROWS_SCATTER_ADD &&
               is_same(rows->table_dtype, rows->dense_dtype);
  a->table_bytes = tarn__rows_table_bytes(rows);
  a->units = rows->width;
  a->table_dtype = rows->table_dtype;
  a->dense_dtype = rows->dense_dtype;
  if (is_same(rows->table_dtype, rows->dense_dtype))
    a->dense_dtype = a->table_dtype;
  a->table_access = access_of(rows->table_dtype, table_bits(c));
  a->dense_access = access_of(rows->dense_dtype, dense_bits(c));
  a->index_access = access_of(rows->index_dtype, align_bits(&c->indices));
  if (!moves) return;
  c->unit = unit_of(c);
  a->units = a->table_bytes / c->unit;
  if (is_streamed(c)) a->flags |= TARN__OPENCL_ROWS_STREAM;
}

static void describe(call *c) {
  const tarn_rows *rows = c->rows;
  args *a = &c->args;
  a->table_offset = rows->table_offset;
  a->table_stride = rows->table_stride;
  a->table_count = rows->table_count;
  a->dense_stride = rows->dense_stride;
  a->end = UINT64_MAX;
  a->chunks = rows->table.count;
  if ((rows->flags & TARN_ROWS_SKIP_BAD) != 0)
    a->flags |= TARN__OPENCL_ROWS_SKIP;
  if (gathers(c)) a->flags |= TARN__OPENCL_ROWS_CLEAR;
  if (c->way == WAY_SEARCH) a->flags |= TARN__OPENCL_ROWS_SEARCH;
  describe_rows(c);
}

// --- the program -----------------------------------------------------------

// The NaN of this processor, which devices are to agree with.
static bool makes_negative_nan(void) {
  volatile double infinite = INFINITY;
  return signbit(infinite - infinite) != 0;
}

// Conversions are done with integers. Sums need floats with subnormals for f32
// and bf16, or doubles, which f64 needs.
static bool can_add(const call *c, bool denorms) {
  if (c->device->has_f64 || !is_float(c->rows->table_dtype)) return true;
  if (c->rows->table_dtype == TARN_DTYPE_F64) return false;
  return denorms || c->rows->table_dtype == TARN_DTYPE_F16;
}

static tarn_status take_kernel(call *c) {
  bool adds = c->action == TARN__ROWS_SCATTER_ADD;
  bool denorms = adds && c->device->has_denorms;
  char options[112];
  if (adds && !can_add(c, denorms)) {
    return tarn__text_fail(TARN_E_UNSUPPORTED,
                           "opencl:%d cannot add elements of %s", c->device->id,
                           tarn_dtype_name(c->rows->table_dtype));
  }
  snprintf(options, sizeof options, "-D ACTION=%d -D UNIT=%zu%s%s%s%s",
           (int)c->action, c->unit, c->solo ? " -D SOLO" : "",
           adds && c->device->has_f64 ? " -D F64" : "",
           denorms ? " -D DENORM" : "",
           adds && makes_negative_nan() ? " -D NEGATIVE_NAN" : "");
  return tarn__opencl_kernel_take(c->device, options, &c->kernel);
}

// --- shares ----------------------------------------------------------------

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t ceil_div(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

// Of |count| indices, for work items that move whole rows.
static void share_solo(const call *c, size_t count, args *a) {
  size_t bytes =
      tarn__rows_table_bytes(c->rows) + tarn__rows_dense_bytes(c->rows);
  size_t each = SHARE_LEAST / (bytes + 1) + 1;  // rows
  size_t most = gathers(c) ? c->device->units * SHARES
                           : least(c->device->units, WORKERS_MOST);
  a->lanes = 1;
  a->workers = least(most, ceil_div(count, each));
  a->run = ceil_div(count, (size_t)a->workers);
  a->step = 1;
  a->span = a->run;
}

// For work items that share rows: neighbours have neighbouring positions.
static void share_lanes(const call *c, size_t count, args *a) {
  size_t items = c->device->units * (gathers(c) ? ITEMS_GATHER : ITEMS_SCATTER);
  a->lanes = 1;
  while (a->lanes < GROUP && a->lanes < a->units)
    a->lanes *= 2;
  a->workers = least(count, items / (size_t)a->lanes);
  a->run = 1;
  a->step = a->workers;
  a->span = count;
}

static void share(const call *c, size_t count, args *a) {
  if (c->solo) {
    share_solo(c, count, a);
  } else {
    share_lanes(c, count, a);
  }
}

// --- arguments -------------------------------------------------------------

static cl_int set_null(const call *c, cl_uint argument) {
  return driver()->SetKernelArg(c->kernel.handle, argument, sizeof(cl_mem),
                                NULL);
}

static cl_int set_buffer(const call *c, cl_uint argument, cl_mem buffer) {
  return driver()->SetKernelArg(c->kernel.handle, argument, sizeof buffer,
                                &buffer);
}

// The beginning of the block; the kernel adds the offset, which |*out_at| is.
static cl_int set_span(const call *c, cl_uint argument, const span *s,
                       cl_ulong *out_at) {
  const tarn__opencl_extensions *ext = &c->device->platform->ext;
  const void *pointer = (const void *)(uintptr_t)s->base;
  *out_at = s->offset;
  switch (s->method) {
    case TARN__OPENCL_USM:
      return ext->set_mem_pointer(c->kernel.handle, argument, pointer);
    case TARN__OPENCL_SVM:
      return driver()->SetKernelArgSVMPointer(c->kernel.handle, argument,
                                              pointer);
    case TARN__OPENCL_ADDRESS:
      return ext->set_device_pointer(c->kernel.handle, argument, s->base);
    case TARN__OPENCL_WINDOW:
      return set_buffer(c, argument, s->buffer);
    default:
      return set_null(c, argument);
  }
}

static cl_int set_arguments(call *c) {
  cl_int error = set_span(c, ARG_INDICES, &c->indices, &c->args.indices_at);
  if (error == CL_SUCCESS)
    error = set_span(c, ARG_DENSE, &c->dense, &c->args.dense_at);
  if (error == CL_SUCCESS)
    error = set_span(c, ARG_TABLE, &c->one, &c->args.table_at);
  if (error == CL_SUCCESS) {
    error = c->addresses != NULL ? set_buffer(c, ARG_CHUNKS, c->addresses)
                                 : set_null(c, ARG_CHUNKS);
  }
  if (error == CL_SUCCESS) error = set_buffer(c, ARG_FAULT, c->faults);
  return error;
}

// --- chunks with addresses -------------------------------------------------

// The array in which kernels search.
static cl_int make_addresses(call *c) {
  const tarn_reference *table = &c->rows->table;
  size_t count = 2 * table->count + 1;
  cl_int error = CL_OUT_OF_HOST_MEMORY;
  cl_ulong *array = tarn__host_array(count, sizeof *array);
  if (array == NULL) return error;
  for (size_t i = 0; i < table->count; i++)
    array[i] = c->chunks[i].base + c->chunks[i].offset;
  for (size_t i = 0; i <= table->count; i++)
    array[table->count + i] = table->offsets[i];
  c->addresses = driver()->CreateBuffer(c->device->context,
                                        CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                        count * sizeof *array, array, &error);
  tarn__host_free_array(array, count, sizeof *array);
  return error;
}

// Tells the driver of the blocks of |method|, which the kernel has no argument
// for.
static cl_int announce(const call *c, tarn__opencl_method method,
                       cl_kernel_exec_info what, uint64_t *bases) {
  size_t count = 0;
  for (size_t i = 0; i < c->rows->table.count; i++)
    if (c->chunks[i].method == method) bases[count++] = c->chunks[i].base;
  if (count == 0) return CL_SUCCESS;
  return driver()->SetKernelExecInfo(c->kernel.handle, what,
                                     count * sizeof *bases, bases);
}

_Static_assert(sizeof(void *) == sizeof(uint64_t), "bases are pointers");

static cl_int announce_all(const call *c) {
  size_t count = c->rows->table.count;
  uint64_t *bases = tarn__host_array(count, sizeof *bases);
  if (bases == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_int error =
      announce(c, TARN__OPENCL_SVM, CL_KERNEL_EXEC_INFO_SVM_PTRS, bases);
  if (error == CL_SUCCESS)
    error = announce(c, TARN__OPENCL_USM, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL,
                     bases);
  if (error == CL_SUCCESS)
    error = announce(c, TARN__OPENCL_ADDRESS, TARN__OPENCL_EXEC_DEVICE_POINTERS,
                     bases);
  tarn__host_free_array(bases, count, sizeof *bases);
  return error;
}

// --- launches --------------------------------------------------------------

static size_t group_size(const call *c) {
  return c->solo ? 1 : least(c->device->group, GROUP);
}

// Queues the kernel for |a|.
static cl_int launch(call *c, const tarn__opencl_work *work, const args *a) {
  size_t group = group_size(c);
  size_t items = ceil_div((size_t)(a->workers * a->lanes), group) * group;
  cl_event event = NULL;
  cl_int error =
      driver()->SetKernelArg(c->kernel.handle, ARG_ARGS, sizeof *a, a);
  if (error != CL_SUCCESS) return error;
  error = driver()->EnqueueNDRangeKernel(work->queue, c->kernel.handle, 1, NULL,
                                         &items, &group, 0, NULL, &event);
  if (error != CL_SUCCESS) return error;
  tarn__opencl_keep(work->record, "rows", event);
  return CL_SUCCESS;
}

// A launch for each chunk; the first one clears rows, since each finds bad
// indices.
static cl_int launch_each(call *c, const tarn__opencl_work *work, args *a) {
  const tarn_reference *table = &c->rows->table;
  cl_int error = CL_SUCCESS;
  for (size_t i = 0; i < table->count && error == CL_SUCCESS; i++) {
    if (c->chunks[i].method == TARN__OPENCL_NONE) continue;
    a->begin = table->offsets[i];
    a->end = table->offsets[i + 1];
    error = set_span(c, ARG_TABLE, &c->chunks[i], &a->table_at);
    if (error == CL_SUCCESS) error = launch(c, work, a);
    a->flags &= ~(cl_ulong)TARN__OPENCL_ROWS_CLEAR;
  }
  return error;
}

static cl_int launch_part(call *c, const tarn__opencl_work *work, size_t first,
                          size_t count) {
  args a = c->args;
  a.first = first;
  a.count = count;
  a.indices_at += first * tarn_dtype_size(c->rows->index_dtype);
  a.dense_at += first * c->rows->dense_stride;
  share(c, count, &a);
  return c->way == WAY_EACH ? launch_each(c, work, &a) : launch(c, work, &a);
}

static size_t launches(const call *c) {
  size_t parts = ceil_div(c->rows->index_count, PART_MOST);
  return c->way == WAY_EACH ? parts * c->rows->table.count : parts;
}

static cl_int launch_all(call *c, tarn__opencl_work *work) {
  size_t count = c->rows->index_count;
  if (!tarn__opencl_reserve(work, launches(c))) return CL_OUT_OF_HOST_MEMORY;
  cl_int error = set_arguments(c);
  if (error == CL_SUCCESS && c->way == WAY_SEARCH) error = announce_all(c);
  for (size_t first = 0; first < count && error == CL_SUCCESS;
       first += PART_MOST) {
    error = launch_part(c, work, first, least(count - first, PART_MOST));
  }
  return error;
}

// An error of the driver's is none of the caller's.
static tarn_status outcome_of(C_Status status, cl_int error) {
  tarn_status answer = tarn__opencl_answer(status);
  return error != CL_SUCCESS && answer == TARN_E_INVALID ? TARN_E_DEVICE
                                                         : answer;
}

static tarn_status queue_all(call *c, C_Stream stream) {
  tarn__opencl_work work;
  uint64_t serial = 0;
  C_Status status = tarn__opencl_begin(c->device, stream, &work);
  if (status != C_SUCCESS) return tarn__opencl_answer(status);
  status = tarn__opencl_faults(&work, &c->faults, &serial);
  c->args.serial = serial;
  cl_int error = CL_SUCCESS;
  if (status == C_SUCCESS) error = launch_all(c, &work);
  C_Status outcome = tarn__opencl_end(&work, "rows", error, NULL);
  return outcome_of(status != C_SUCCESS ? status : outcome, error);
}

// --- the call --------------------------------------------------------------

static tarn_status prepare(call *c) {
  TARN__TRY(find_all(c));
  c->solo = !c->device->is_gpu;
  describe(c);
  TARN__TRY(take_kernel(c));
  if (c->way != WAY_SEARCH) return TARN_OK;
  cl_int error = make_addresses(c);
  return error == CL_SUCCESS
             ? TARN_OK
             : outcome_of(tarn__opencl_say(error, "clCreateBuffer"), error);
}

// What is queued keeps its kernel and buffers.
static void clean_up(call *c) {
  if (c->addresses != NULL) (void)driver()->ReleaseMemObject(c->addresses);
  if (c->kernel.handle != NULL)
    tarn__opencl_kernel_give(&c->kernel, c->way != WAY_SEARCH);
  if (c->chunks != NULL && c->chunks != &c->one)
    tarn__host_free_array(c->chunks, c->rows->table.count, sizeof(span));
}

static tarn_status check(tarn__rows_action action, const tarn_rows *rows) {
  if (rows == NULL) return tarn__text_fail(TARN_E_INVALID, "rows is NULL");
  if (tarn__rows_are_newer(rows)) {
    return tarn__text_fail(TARN_E_UNSUPPORTED, "unknown flags 0x%x of rows",
                           (unsigned)rows->flags);
  }
  if (action == TARN__ROWS_SCATTER_ADD &&
      !tarn__convert_can_add(rows->table_dtype)) {
    return tarn__text_fail(TARN_E_INVALID, "elements of %s cannot be added",
                           tarn_dtype_name(rows->table_dtype));
  }
  return TARN_OK;
}

static tarn_status move_rows(tarn__rows_action action, int id, C_Stream stream,
                             const tarn_rows *rows) {
  call c = {.rows = rows, .action = action};
  TARN__TRY(tarn__opencl_admit(id, &c.device));
  TARN__TRY(check(action, rows));
  if (rows->index_count == 0) return TARN_OK;
  tarn_status status = prepare(&c);
  if (status == TARN_OK) status = queue_all(&c, stream);
  clean_up(&c);
  return status;
}

tarn_status tarn__opencl_gather(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_GATHER, id, stream, rows);
}

tarn_status tarn__opencl_scatter(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER, id, stream, rows);
}

tarn_status tarn__opencl_scatter_add(int id, void *stream,
                                     const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER_ADD, id, stream, rows);
}
