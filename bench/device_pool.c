// A hit of arena_pool: what a request costs that the pool serves out of memory
// which it has, over the same on cpu:0; and whether it calls the plug-in.
//
// Calls are not counted by anything that takes part in them. While a hit is
// made, the code of the plug-in's shared object cannot be executed: the first
// call of any of its functions is a fault, whose handler takes note and lets it
// go on.
//
//     not executable ──call──► SIGSEGV: noted, executable ──► the call goes on
//          ▲                                                       │
//          └──────────────────── before the next hit ──────────────┘
//
// A call that is known to reach the plug-in is made first: where it is not
// noted there is no figure.
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_figures.h"

enum { SIZE = 4096, HITS = 1000, WARMING = 3000, PARTS_MOST = 4 };

static const char no_hits[] = "not all of the requests were hits";

static bool refuse(char *why, const char *text) {
  snprintf(why, PROBE_TEXT_SIZE, "%s", text);
  return false;
}

// ---------------------------------------------------------------------------
// Hits
// ---------------------------------------------------------------------------

// A pool of its own on a device, and a stream to use its blocks on.
typedef struct hitter {
  tarn_device *device;
  tarn_stream *stream;
  tarn_pool *pool;
} hitter;

static bool hit(const hitter *h, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_block block;
    if (tarn_pool_alloc(h->pool, SIZE, 0, h->stream, &block) != TARN_OK ||
        tarn_pool_free(&block, h->stream) != TARN_OK)
      return false;
  }
  return true;
}

// The pool has the memory afterwards, and has looked often enough at what is
// asked of it to change no more.
static bool make_hitter(tarn_device *device, hitter *h) {
  const tarn_pool_options options = {.struct_size = sizeof options,
                                     .strategy = "arena_pool"};
  h->device = device;
  return tarn_stream_create(device, &h->stream) == TARN_OK &&
         tarn_pool_create(tarn_place_on(device), &options, &h->pool) ==
             TARN_OK &&
         hit(h, WARMING);
}

static void end_hitter(hitter *h) {
  (void)tarn_pool_destroy(h->pool);
  (void)tarn_stream_destroy(h->stream);
}

static uint64_t misses_of(const hitter *h) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_query(h->pool, &stats);
  return status == TARN_OK ? stats.misses : UINT64_MAX;
}

// ---------------------------------------------------------------------------
// Time
// ---------------------------------------------------------------------------

typedef struct pair {
  hitter own;
  hitter host;
} pair;

static bool hit_own(probe *p, size_t count) {
  return hit(&((pair *)p->scene)->own, count);
}

static bool hit_host(probe *p, size_t count) {
  return hit(&((pair *)p->scene)->host, count);
}

static bool time_hits(probe *p, pair *both, probe_times *out, char *why) {
  uint64_t before = misses_of(&both->own) + misses_of(&both->host);
  p->scene = both;
  bool timed = probe_time_beside(p, hit_own, hit_host, out, why);
  p->scene = NULL;
  uint64_t after = misses_of(&both->own) + misses_of(&both->host);
  return timed && (after == before || refuse(why, no_hits));
}

bool device_hit(probe *p, probe_times *out, char *why) {
  tarn_device *cpu = NULL;
  pair both = {.own = {.device = NULL}, .host = {.device = NULL}};
  bool made =
      (tarn_device_open("cpu:0", &cpu) == TARN_OK &&
       make_hitter(p->device, &both.own) && make_hitter(cpu, &both.host)) ||
      probe_refused(why);
  bool timed = made && time_hits(p, &both, out, why);
  end_hitter(&both.own);
  end_hitter(&both.host);
  if (cpu != NULL) (void)tarn_device_close(cpu);
  return timed;
}

// ---------------------------------------------------------------------------
// The trap
// ---------------------------------------------------------------------------

typedef struct part {
  char *start;
  size_t size;
} part;

// The code of a shared object. A handler of signals finds it here.
static struct trap {
  const char *file;
  part parts[PARTS_MOST];
  size_t count;
  volatile sig_atomic_t called;
} trap;

static bool protect(int rights) {
  bool done = true;
  for (size_t i = 0; i < trap.count; i++)
    done =
        mprotect(trap.parts[i].start, trap.parts[i].size, rights) == 0 && done;
  return done;
}

static bool is_inside(const void *address) {
  const char *at = address;
  for (size_t i = 0; i < trap.count; i++) {
    const part *p = &trap.parts[i];
    if (at >= p->start && at < p->start + p->size) return true;
  }
  return false;
}

// Any other fault is a crash, as if there were no handler: it happens again.
static void note(int signal_number, siginfo_t *info, void *context) {
  (void)context;
  if (!is_inside(info->si_addr) || !protect(PROT_READ | PROT_EXEC)) {
    (void)signal(signal_number, SIG_DFL);
    return;
  }
  trap.called = 1;
}

static bool is_same_file(const char *name) {
  char *path = realpath(name, NULL);
  char *wanted = realpath(trap.file, NULL);
  bool is_same = path != NULL && wanted != NULL && strcmp(path, wanted) == 0;
  free(path);
  free(wanted);
  return is_same;
}

static void add_part(const struct dl_phdr_info *object, const ElfW(Phdr) * p) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = object->dlpi_addr + p->p_vaddr;
  uintptr_t first = start & ~(page - 1);
  uintptr_t behind = (start + p->p_memsz + page - 1) & ~(page - 1);
  trap.parts[trap.count++] = (part){
      (char *)object->dlpi_addr + (first - object->dlpi_addr), behind - first};
}

static int look(struct dl_phdr_info *object, size_t size, void *context) {
  (void)size;
  (void)context;
  if (object->dlpi_name[0] != '/' || !is_same_file(object->dlpi_name)) return 0;
  for (size_t i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    bool is_code = p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0;
    if (is_code && trap.count < PARTS_MOST) add_part(object, p);
  }
  return 1;
}

static bool find_code(tarn_device *device, char *why) {
  tarn_device_info info = {.struct_size = sizeof info};
  if (tarn_device_query(device, &info) != TARN_OK) return probe_refused(why);
  trap.file = info.plugin;
  trap.count = 0;
  (void)dl_iterate_phdr(look, NULL);
  return trap.count > 0 || refuse(why, "the plug-in's code is not found");
}

// ---------------------------------------------------------------------------
// Calls
// ---------------------------------------------------------------------------

// Whether a function calls the plug-in, which must have taken part before.
typedef bool call_fn(const hitter *h);

static bool one_hit(const hitter *h) {
  return hit(h, 1);
}

static bool ask_memory(const hitter *h) {
  size_t total = 0, left = 0;
  return tarn_device_memory(h->device, &total, &left) == TARN_OK;
}

static bool observe(call_fn *call, const hitter *h, bool *out_called) {
  trap.called = 0;
  bool armed = protect(PROT_READ);
  bool done = armed && call(h);
  (void)protect(PROT_READ | PROT_EXEC);
  *out_called = trap.called != 0;
  return done;
}

static bool count_calls(const hitter *h, double *out, char *why) {
  bool called = false;
  if (!observe(ask_memory, h, &called)) return probe_refused(why);
  if (!called) return refuse(why, "calls of the plug-in are not seen");
  uint64_t before = misses_of(h);
  *out = 0;
  for (size_t i = 0; i < HITS; i++) {
    if (!observe(one_hit, h, &called)) return probe_refused(why);
    *out += called;
  }
  return misses_of(h) == before || refuse(why, no_hits);
}

static bool count_with_handler(const hitter *h, double *out, char *why) {
  struct sigaction before;
  struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, &before) != 0) {
    return refuse(why, "no handler of faults");
  }
  bool counted = count_calls(h, out, why);
  (void)sigaction(SIGSEGV, &before, NULL);
  return counted;
}

bool device_hit_calls(probe *p, probe_times *out, char *why) {
  hitter h = {.device = NULL};
  bool made = make_hitter(p->device, &h) || probe_refused(why);
  bool counted = made && find_code(p->device, why) &&
                 count_with_handler(&h, &out->ratio, why);
  end_hitter(&h);
  return counted;
}
