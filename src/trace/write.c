// Writes a trace to a file in any format.
#include "trace/writers.h"

#include "base/os.h"
#include "base/status.h"

static const struct format {
  const char *name;
  tarn__trace_writer *write;
} formats[] = {
    [TARN_TRACE_FORMAT_TARN] = {"tarn", tarn__log_write},
    [TARN_TRACE_FORMAT_PYTORCH] = {"pytorch", tarn__snapshot_write},
    [TARN_TRACE_FORMAT_PERFETTO] = {"perfetto", tarn__perfetto_write},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool is_format(tarn_trace_format format) {
  return format >= TARN_TRACE_FORMAT_TARN && (size_t)format < FORMATS;
}

const char *tarn_trace_format_name(tarn_trace_format format) {
  return is_format(format) ? formats[format].name : NULL;
}

static tarn_status check(const tarn_trace *trace, tarn_trace_format format,
                         bool has_target) {
  if (trace == NULL || !has_target) {
    return tarn__fail(TARN_E_INVALID, "trace: writing to or from NULL");
  }
  if (is_format(format)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "trace: no format has the number %d",
                    (int)format);
}

tarn_status tarn_trace_write_to(const tarn_trace *trace,
                                tarn_trace_format format,
                                tarn_trace_sink_fn *sink, void *context) {
  tarn__trace_sink gathered;
  TARN__TRY(check(trace, format, sink != NULL));
  TARN__TRY(tarn__sink_init(&gathered, sink, context));
  tarn_status status = formats[format].write(trace, &gathered);
  tarn_status handed = tarn__sink_finish(&gathered);
  return status == TARN_OK ? handed : status;
}

static tarn_status write_piece(void *context, const void *bytes, size_t size) {
  return tarn__os_file_write(context, bytes, size);
}

tarn_status tarn_trace_write(const tarn_trace *trace, tarn_trace_format format,
                             const char *path) {
  tarn__os_new_file file;
  TARN__TRY(check(trace, format, path != NULL));
  TARN__TRY(tarn__os_file_begin(path, &file));
  tarn_status status = tarn_trace_write_to(trace, format, write_piece, &file);
  if (status == TARN_OK) return tarn__os_file_commit(&file);
  tarn__os_file_cancel(&file);
  return status;
}
