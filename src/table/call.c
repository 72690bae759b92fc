// Options, and what ranks compare of them.
#include "table/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "whole/whole.h"

enum {
  ALL_FLAGS = TARN_FILE_UNCHECKED | TARN_FILE_PART | TARN_FILE_FEWER |
              TARN_FILE_CACHED | TARN_FILE_THREADS,
  USUAL_BUFFER = 16 << 20,
  LEAST_BUFFER = TARN__TABLE_CHUNK,
};

static const char *const formats[] = {[TARN_FILE_NPY] = "npy",
                                      [TARN_FILE_SAFETENSORS] = "safetensors",
                                      [TARN_FILE_RAW] = "raw"};

// --- options ---------------------------------------------------------------

static bool ends_with(const char *path, const char *end) {
  size_t size = strlen(path);
  size_t length = strlen(end);
  return size >= length && strcmp(path + size - length, end) == 0;
}

static tarn_status find_format(tarn__table_call *call) {
  tarn_file_format *format = &call->options.format;
  if (*format == TARN_FILE_BY_NAME) *format = call->format;
  if (call->format != TARN_FILE_BY_NAME && *format != call->format) {
    return tarn__fail(TARN_E_INVALID, "%s: the format is %d; %s files only",
                      call->name, (int)*format, formats[call->format]);
  }
  if (*format == TARN_FILE_BY_NAME && ends_with(call->path, ".npy"))
    *format = TARN_FILE_NPY;
  if (*format == TARN_FILE_BY_NAME && ends_with(call->path, ".safetensors"))
    *format = TARN_FILE_SAFETENSORS;
  if (*format == TARN_FILE_BY_NAME) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: '%s' ends neither in .npy nor in .safetensors, and "
                      "the options name no format",
                      call->name, call->path);
  }
  if (*format >= TARN_FILE_NPY && *format <= TARN_FILE_RAW) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: unknown format %d", call->name,
                    (int)*format);
}

static tarn_status read_options(tarn__table_call *call,
                                const tarn_file_options *given) {
  tarn_file_options *o = &call->options;
  if (given != NULL) {
    TARN__TRY(tarn__take_struct(call->name, given,
                                TARN__SIZE_UP_TO(tarn_file_options, user), o,
                                sizeof *o));
  }
  if (call->path == NULL)
    return tarn__fail(TARN_E_INVALID, "%s: the path is NULL", call->name);
  TARN__TRY(find_format(call));
  if ((o->flags & ~(uint64_t)ALL_FLAGS) != 0) {
    return tarn__fail(TARN_E_INVALID, "%s: unknown flags 0x%" PRIx64,
                      call->name, o->flags);
  }
  if (o->dtype != TARN_DTYPE_NONE && tarn_dtype_size(o->dtype) == 0) {
    return tarn__fail(TARN_E_INVALID, "%s: unknown dtype %d", call->name,
                      (int)o->dtype);
  }
  if (o->buffer == 0) o->buffer = USUAL_BUFFER;
  if (o->buffer < LEAST_BUFFER) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: a buffer of %zu bytes; at least %d expected",
                      call->name, o->buffer, LEAST_BUFFER);
  }
  bool raw = o->format == TARN_FILE_RAW && call->verb == TARN__TABLE_LOAD;
  if (!raw && (o->deal != 0 || (o->flags & TARN_FILE_FEWER) != 0)) {
    return tarn__fail(
        TARN_E_INVALID,
        "%s: rows are dealt out, or may be fewer, in loads of raw "
        "files only",
        call->name);
  }
  if (call->verb == TARN__TABLE_LOAD || o->first_row == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: first_row is for loads", call->name);
}

static tarn_status check_name(const tarn__table_call *call, size_t i) {
  const char *name = call->tensors[i].name;
  if (name == NULL)
    return tarn__fail(TARN_E_INVALID, "%s: tensor %zu has no name", call->name,
                      i);
  for (size_t k = 0; k < i; k++) {
    if (strcmp(call->tensors[k].name, name) == 0) {
      return tarn__fail(TARN_E_INVALID, "%s: tensors %zu and %zu are both '%s'",
                        call->name, k, i, name);
    }
  }
  return TARN_OK;
}

static tarn_status check_tensors(const tarn__table_call *call) {
  for (size_t i = 0; i < call->count; i++) {
    const tarn_whole_named *t = &call->tensors[i];
    size_t first = 0;
    size_t rows = 0;
    TARN__TRY(check_name(call, i));
    TARN__TRY(tarn_whole_tensor_rows(&t->tensor, call->rank, &first, &rows));
    if (tarn_whole_comm(t->tensor.whole) != call->comm) {
      return tarn__fail(TARN_E_INVALID,
                        "%s: tensors %zu and 0 are of two communicators",
                        call->name, i);
    }
  }
  return TARN_OK;
}

// --- begin and end ---------------------------------------------------------

// The name is the one that it has in a file.
tarn__table_call tarn__table_call_of_one(
    tarn__table_verb verb, const char *name, tarn_file_format format,
    const tarn_whole_tensor *tensor, const char *path, tarn_whole_named *one) {
  if (tensor != NULL) *one = (tarn_whole_named){"table", *tensor};
  return (tarn__table_call){.verb = verb,
                            .name = name,
                            .format = format,
                            .path = path,
                            .tensors = tensor != NULL ? one : NULL,
                            .count = 1};
}

static void say(const void *subject, char *out, size_t out_size) {
  const tarn__table_call *call = subject;
  snprintf(out, out_size, "%s of '%.120s'", call->name,
           call->path != NULL ? call->path : "");
}

tarn_status tarn__table_call_begin(tarn__table_call *call,
                                   const tarn_file_options *options,
                                   tarn_status *out_status) {
  if (call->count == 0 || call->tensors == NULL)
    return tarn__fail(TARN_E_INVALID, "%s: no tensor", call->name);
  TARN__TRY(tarn__whole_check(call->tensors[0].tensor.whole));
  call->comm = tarn_whole_comm(call->tensors[0].tensor.whole);
  TARN__TRY(tarn__comm_state(call->comm));
  call->rank = tarn_comm_rank(call->comm);
  call->ranks = tarn_comm_size(call->comm);
  call->caller =
      (tarn__comm_caller){.number = (UINT64_C(1) << 62) + (uint64_t)call->verb,
                          .say = say,
                          .subject = call};
  *out_status = read_options(call, options);
  if (*out_status == TARN_OK) *out_status = check_tensors(call);
  tarn__comm_call_for(call->comm, &call->caller);
  return TARN_OK;
}

void tarn__table_call_end(tarn__table_call *call) {
  tarn__comm_call_for(call->comm, NULL);
}

// --- what is the same ------------------------------------------------------

static uint32_t sum_of_tensors(const tarn__table_call *call) {
  uint32_t sum = 0;
  for (size_t i = 0; i < call->count; i++) {
    const tarn_whole_named *t = &call->tensors[i];
    const uint64_t shape[] = {(uint64_t)t->tensor.dtype, t->tensor.dims,
                              t->tensor.rows, t->tensor.width};
    sum = tarn__crc32c(sum, shape, sizeof shape);
    sum = tarn__crc32c(sum, t->name, strlen(t->name) + 1);
  }
  return sum;
}

tarn_status tarn__table_call_compare(tarn__table_call *call,
                                     tarn_status status) {
  char words[192] = "";
  char mine[240] = "";
  const tarn_file_options *o = &call->options;
  if (status == TARN_OK) {
    const tarn_whole_tensor *t = &call->tensors[0].tensor;
    snprintf(words, sizeof words,
             "%s: %zu tensors, the first %zu x %zu %s, %s of %s from row %zu "
             "on, flags %" PRIx64 ", deal %zu",
             call->name, call->count, t->rows, t->width,
             tarn_dtype_name(t->dtype), formats[o->format],
             tarn_dtype_name(o->dtype), o->first_row, o->flags, o->deal);
    snprintf(mine, sizeof mine, "%s %08" PRIx32, words, sum_of_tensors(call));
  }
  return tarn__comm_agree_on(call->comm, status, mine, sizeof mine, words);
}

// --- reports ---------------------------------------------------------------

tarn_status tarn__table_call_check_report(const tarn__table_call *call,
                                          tarn_file_report *report) {
  size_t size = 0;
  if (report == NULL) return TARN_OK;
  return tarn__clear_struct(call->name, report,
                            TARN__SIZE_UP_TO(tarn_file_report, method),
                            sizeof *report, &size);
}

void tarn__table_call_report(const tarn_file_report *given,
                             tarn_file_report *out_report) {
  size_t size = 0;
  if (out_report == NULL) return;
  bool known = tarn__struct_size(out_report->struct_size,
                                 TARN__SIZE_UP_TO(tarn_file_report, method),
                                 sizeof *out_report, &size);
  if (!known) return;
  size_t keep = offsetof(tarn_file_report, rows);
  memcpy((char *)out_report + keep, (const char *)given + keep, size - keep);
}
