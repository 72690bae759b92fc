// The report: a line on stderr, or a line of JSON in a file, one a process.
#include "preload/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tarn/account.h>
#include <unistd.h>

#include "preload/settings.h"

static _Atomic uint64_t left;
static tarn_pool_stats before;  // of the parent

void report_left(void) {
  atomic_fetch_add_explicit(&left, 1, memory_order_relaxed);
}

static bool is_wanted(void) {
  return settings_now()->report[0] != '\0';
}

static tarn_pool_stats stats_of(tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  if (pool == NULL || tarn_pool_query(pool, &stats) != TARN_OK) {
    stats = (tarn_pool_stats){.struct_size = sizeof stats};
  }
  return stats;
}

void report_forget(tarn_pool *pool) {
  if (is_wanted()) before = stats_of(pool);
  atomic_store(&left, 0);
}

// What a line of JSON may hold without more ado.
static const char *program(char out[64]) {
  snprintf(out, 64, "%s", program_invocation_short_name);
  for (char *at = out; *at != '\0'; at++) {
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = '_';
  }
  return out;
}

static double mib(size_t bytes) {
  return (double)bytes / (1 << 20);
}

static void say(const tarn_pool_stats *now, uint64_t allocs, uint64_t hits) {
  char name[64];
  double share = allocs != 0 ? 100.0 * (double)hits / (double)allocs : 100;
  settings_say("%s (%d), %s: %" PRIu64
               " requests, %.2f%% without the system, "
               "%" PRIu64
               " left to the C library; reserved at most %.1f MiB "
               "for %.1f MiB in use",
               program(name), (int)getpid(),
               now->strategy != NULL ? now->strategy : "no pool", allocs, share,
               (uint64_t)atomic_load(&left), mib(now->reserved_peak_bytes),
               mib(now->live_peak_bytes));
}

static void write_line(const char *path, const char *text, int length) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, text, (size_t)length) != length) {
    settings_say("%s: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
}

static void write_json(const char *path, const tarn_pool_stats *now,
                       uint64_t allocs, uint64_t hits) {
  char name[64];
  char text[512];
  int length = snprintf(
      text, sizeof text,
      "{\"program\": \"%s\", \"pid\": %d, \"strategy\": \"%s\", \"allocs\": "
      "%" PRIu64 ", \"hits\": %" PRIu64 ", \"left\": %" PRIu64
      ", \"reserved_peak_bytes\": %zu, \"live_peak_bytes\": %zu}\n",
      program(name), (int)getpid(), now->strategy != NULL ? now->strategy : "",
      allocs, hits, (uint64_t)atomic_load(&left), now->reserved_peak_bytes,
      now->live_peak_bytes);
  if (length > 0 && (size_t)length < sizeof text) {
    write_line(path, text, length);
  }
}

void report_write(tarn_pool *pool) {
  if (!is_wanted()) return;
  tarn_pool_stats now = stats_of(pool);
  const char *path = settings_now()->report;
  uint64_t allocs = now.allocs - before.allocs;
  uint64_t hits = now.hits - before.hits;
  if (allocs == 0 && atomic_load(&left) == 0) return;
  if (strcmp(path, "-") == 0) {
    say(&now, allocs, hits);
  } else {
    write_json(path, &now, allocs, hits);
  }
}
