// Traces by name, and what has to be said of them.
#include "load.h"

#include <string.h>

#include "kit/format.h"
#include "kit/options.h"
#include "looks.h"

bool load_is_workload(const char *name) {
  return name[0] == '@';
}

tool_exit load_check(const tool_verb *verb, const char *name,
                     const tarn_trace_options *options) {
  if (!load_is_workload(name)) return TOOL_DONE;
  if (!options_is_known(name, strcspn(name, ":"), tarn_trace_workload)) {
    return options_unknown(verb, "workload", name, tarn_trace_workload);
  }
  if (!options->choose_device) return TOOL_DONE;
  return tool_misuse(verb, "--trace-device is for recorded traces: %s has none",
                     name);
}

static void note_devices(const tool_verb *verb,
                         const tarn_trace_options *options,
                         const tarn_trace *trace) {
  if (trace->device_count < 2 || options->choose_device) return;
  tool_say(verb,
           "%s: %u devices have a history; this is device %u "
           "(--trace-device chooses another)",
           trace->name, trace->device_count, trace->device);
}

static void note_no_history(const tool_verb *verb, const tarn_trace *trace) {
  if (trace->event_count > 0) return;
  if (strcmp(trace->format, "pytorch-snapshot") != 0) {
    tool_say(verb, "%s: no events recorded", trace->name);
    return;
  }
  tool_say(verb,
           "%s: no events recorded; call "
           "torch.cuda.memory._record_memory_history() first",
           trace->name);
}

static void note_ignored(const tool_verb *verb, const tarn_trace *trace) {
  char bytes[FORMAT_SIZE];
  if (trace->ignored_count == 0) return;
  tool_say(verb,
           "%s: %s in %zu block%s left out: alive at the end, but born after "
           "the last event",
           trace->name, format_bytes(bytes, trace->ignored_bytes),
           trace->ignored_count, trace->ignored_count == 1 ? "" : "s");
}

static void note_lost(const tool_verb *verb, const tarn_trace *trace) {
  if (trace->lost_count > 0) {
    tool_say(verb, "%s: %llu event%s lost when it was recorded", trace->name,
             (unsigned long long)trace->lost_count,
             trace->lost_count == 1 ? " was" : "s were");
  }
  if (trace->unfinished) {
    tool_say(verb,
             "%s: it ends within a record: cut, or still being written; what "
             "is whole of it is read",
             trace->name);
  }
}

// What the file is instead, and where traces come from.
static tool_exit fail(const tool_verb *verb, const char *name) {
  bool foreign = !load_is_workload(name) && looks_foreign(tarn_last_error());
  const char *what = foreign ? looks_like(name) : NULL;
  tool_exit status = tool_fail(verb, "%s", tarn_last_error());
  if (!foreign) return status;
  tool_say(verb, "%s looks like %s", name,
           what != NULL ? what : "nothing that is known here");
  tool_say(verb,
           "traces are made in PyTorch by torch.cuda.memory."
           "_record_memory_history() and later torch.cuda.memory."
           "_dump_snapshot(\"snapshot.pickle\"), and of any program by "
           "'tarn record PROGRAM'");
  return status;
}

tool_exit load_trace(const tool_verb *verb, const char *name,
                     const tarn_trace_options *options,
                     tarn_trace **out_trace) {
  tarn_status status = load_is_workload(name)
                           ? tarn_trace_make(name, out_trace)
                           : tarn_trace_read(name, options, out_trace);
  if (status != TARN_OK) return fail(verb, name);
  note_devices(verb, options, *out_trace);
  note_no_history(verb, *out_trace);
  note_ignored(verb, *out_trace);
  note_lost(verb, *out_trace);
  return TOOL_DONE;
}
