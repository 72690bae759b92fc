// Runs the victim by env, which sets the environment of that program alone.
#include "record_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"

tool_output ran;
tarn_trace *trace;

void record_end(void) {
  tarn_trace_destroy(trace);
  trace = NULL;
  tool_output_free(&ran);
  ran = (tool_output){0};
  tool_files_end();
}

bool record_cannot(void) {
  return *TARN_SANITIZE != '\0';
}

int record_skip(void) {
  return skip_program("the recorder",
                      "this build's sanitizer (" TARN_SANITIZE
                      ") has the functions that the recorder stands before");
}

const char *record_path(const char *suffix) {
  static char path[512];
  char name[64];
  snprintf(name, sizeof name, "trace%s", suffix);
  snprintf(path, sizeof path, "%s", tool_file(name));
  return path;
}

const char *record_setting(void) {
  static char setting[560];
  snprintf(setting, sizeof setting, "TARN_RECORD_OUT=%s", record_path(""));
  return setting;
}

const char *record_preload(void) {
  return "LD_PRELOAD=" TARN_RECORDER;
}

void record(const char *setting, const char *mode, const char *argument) {
  const char *setting_or_none = *setting != '\0' ? setting : "NONE=";
  tool_output_free(&ran);
  ran = tool_run(record_preload(), record_setting(), setting_or_none,
                 TARN_RECORD_VICTIM, mode, argument);
  ck_assert_msg(ran.status == 0, "%s: status %d: %s", mode, ran.status,
                ran.err);
  ck_assert_str_eq(ran.err, "");
}

const char *record_of(const char *pid) {
  static char suffix[32];
  snprintf(suffix, sizeof suffix, ".%ld", strtol(pid, NULL, 10));
  return suffix;
}

void recorded(const char *suffix) {
  recorded_device(suffix, 0);
}

void recorded_device(const char *suffix, uint32_t device) {
  tarn_trace_options options = {.struct_size = sizeof options,
                                .choose_device = device != 0,
                                .device = device};
  tarn_trace_destroy(trace);
  assert_ok(tarn_trace_read(record_path(suffix), &options, &trace));
  ck_assert_str_eq(trace->format, "tarn");
}

uint64_t record_live_bytes(void) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].died == TARN_TRACE_NEVER)
      bytes += trace->blocks[i].size;
  }
  return bytes;
}

size_t record_count(uint64_t size, bool freed) {
  size_t count = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *b = &trace->blocks[i];
    bool died = b->died != TARN_TRACE_NEVER;
    if (b->size == size && died == freed) count++;
  }
  return count;
}

void record_become(const char *mode) {
  setenv("LD_PRELOAD", TARN_RECORDER, 1);
  setenv("TARN_RECORD_OUT", record_path(""), 1);
  execl(TARN_RECORD_VICTIM, TARN_RECORD_VICTIM, mode, (char *)NULL);
  _exit(127);
}
