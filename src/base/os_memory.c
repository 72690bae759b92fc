// How much memory there is: the machine's, or what control groups leave of it.
//
// A process is in one group of each hierarchy. That group and each of its
// ancestors may have a limit, and the tightest one counts:
//
//   /proc/self/cgroup     0::/job/step                 its group
//   /proc/self/mountinfo  ... /job /groups ... cgroup2   where /job is mounted
//   /groups/step          files of its group
//   /groups               files of the ancestor that can be seen
//
// Limits, use and the group itself change, and are read at each call. A file
// that is missing or malformed limits nothing.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

// --- small files -----------------------------------------------------------

typedef struct path {
  char text[PATH_MAX];
} path;

static bool join(path *out, const char *a, const char *b) {
  int length = snprintf(out->text, sizeof out->text, "%s%s", a, b);
  return length >= 0 && (size_t)length < sizeof out->text;
}

bool tarn__os_lines_open(tarn__os_lines *r, const char *name) {
  r->begin = r->end = 0;
  r->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return r->fd >= 0;
}

static bool open_file(tarn__os_lines *r, const char *folder, const char *name) {
  path whole;
  return join(&whole, folder, name) && tarn__os_lines_open(r, whole.text);
}

// Behind what has not been handed out yet; false at the end of the file, and
// where the buffer is full.
static bool read_more(tarn__os_lines *r) {
  memmove(r->bytes, r->bytes + r->begin, r->end - r->begin);
  r->end -= r->begin;
  r->begin = 0;
  ssize_t got = 0;
  do {
    got = read(r->fd, r->bytes + r->end, sizeof r->bytes - r->end);
  } while (got < 0 && errno == EINTR);
  if (got > 0) r->end += (size_t)got;
  return got > 0;
}

char *tarn__os_lines_next(tarn__os_lines *r) {
  for (bool too_long = false;;) {
    char *line = r->bytes + r->begin;
    size_t left = r->end - r->begin;
    char *newline = left > 0 ? memchr(line, '\n', left) : NULL;
    if (newline != NULL) {
      *newline = '\0';
      r->begin = (size_t)(newline + 1 - r->bytes);
      if (!too_long) return line;
      too_long = false;
    } else if (!read_more(r)) {
      if (r->end < sizeof r->bytes) return NULL;
      r->begin = r->end;
      too_long = true;
    }
  }
}

// Digits, and nothing else up to a blank: files of groups say "max" where there
// is no limit.
static bool parse_number(const char *text, size_t *out_number) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  unsigned long long number = strtoull(text, &end, 10);
  if (*end != '\0' && *end != ' ') return false;
  *out_number = number;
  return true;
}

static bool read_number(const char *folder, const char *name,
                        size_t *out_number) {
  tarn__os_lines r;
  if (!open_file(&r, folder, name)) return false;
  const char *line = tarn__os_lines_next(&r);
  bool is_number = line != NULL && parse_number(line, out_number);
  close(r.fd);
  return is_number;
}

// Sets each number whose line begins with its key; leaves the others.
typedef struct entry {
  const char *key;
  size_t *number;
} entry;

static void read_entries(const char *folder, const char *name,
                         const entry *entries, size_t count) {
  tarn__os_lines r;
  size_t found = 0;
  if (!open_file(&r, folder, name)) return;
  for (char *line; found < count && (line = tarn__os_lines_next(&r)) != NULL;) {
    const char *key = strsep(&line, " ");
    if (line == NULL) continue;
    for (size_t i = 0; i < count; i++) {
      if (strcmp(key, entries[i].key) != 0) continue;
      (void)parse_number(line + strspn(line, " "), entries[i].number);
      found++;
    }
  }
  close(r.fd);
}

// --- versions of groups ----------------------------------------------------

typedef struct version {
  const char *type;        // of the file system
  const char *controller;  // that has limits; NULL: there is one tree for all
  const char *limits[2];
  const char *used;
  const char *cache;  // in memory.stat: goes first when memory is needed
} version;

static const version versions[] = {
    {.type = "cgroup2",
     .limits = {"/memory.max", "/memory.high"},
     .used = "/memory.current",
     .cache = "inactive_file"},
    {.type = "cgroup",
     .controller = "memory",
     .limits = {"/memory.limit_in_bytes"},
     .used = "/memory.usage_in_bytes",
     .cache = "total_inactive_file"},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

// --- the process's groups --------------------------------------------------

static bool has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (; list != NULL; list = strchr(list, ',')) {
    list += *list == ',';
    if (strncmp(list, word, length) == 0 &&
        (list[length] == ',' || list[length] == '\0')) {
      return true;
    }
  }
  return false;
}

// Of each version; "": none.
typedef struct groups {
  path of[VERSIONS];
} groups;

// Lines of ID:CONTROLLERS:GROUP.
static void read_groups(const char *root, groups *out) {
  tarn__os_lines r;
  for (size_t i = 0; i < VERSIONS; i++)
    out->of[i].text[0] = '\0';
  if (!open_file(&r, root, "/proc/self/cgroup")) return;
  for (char *line; (line = tarn__os_lines_next(&r)) != NULL;) {
    strsep(&line, ":");
    const char *list = strsep(&line, ":");
    if (line == NULL || *line != '/') continue;
    for (size_t i = 0; i < VERSIONS; i++) {
      const char *controller = versions[i].controller;
      bool is_it =
          controller == NULL ? *list == '\0' : has_word(list, controller);
      if (is_it && !join(&out->of[i], line, "")) out->of[i].text[0] = '\0';
    }
  }
  close(r.fd);
}

// --- where groups are mounted ----------------------------------------------

enum { MOUNT_TEXT = 1024 };

typedef struct mount {
  char group[MOUNT_TEXT];   // the root of what is mounted
  char folder[MOUNT_TEXT];  // ""; there is no mount
  bool in_sight;            // it is, or is above, the process's group
} mount;

typedef struct mounts {
  mount of[VERSIONS];
} mounts;

// Blanks and the like stand there as a backslash and three octal digits.
static bool decode(const char *text, char *out) {
  size_t size = 0;
  for (unsigned byte; *text != '\0'; size++) {
    if (size == MOUNT_TEXT - 1) return false;
    if (sscanf(text, "\\%3o", &byte) == 1) {
      out[size] = (char)byte;
      text += strnlen(text, 4);
    } else {
      out[size] = *text++;
    }
  }
  out[size] = '\0';
  return true;
}

// What |group| is below |above|: "" if it is the same, NULL if it is elsewhere.
static const char *below(const char *group, const char *above) {
  size_t length = strcmp(above, "/") == 0 ? 0 : strlen(above);
  if (strncmp(group, above, length) != 0) return NULL;
  group += length;
  if (strcmp(group, "/") == 0) group++;
  if (*group != '/' && *group != '\0') return NULL;
  return strstr(group, "/..") == NULL ? group : NULL;
}

// ID PARENT DEVICE GROUP FOLDER OPTIONS [MORE...] - TYPE SOURCE OPTIONS
//
// Of several mounts the first with the process's group in sight is taken, or
// else the last.
static void take_mount(char *line, const groups *g, mounts *io) {
  char *fields[5];
  char *rest = strstr(line, " - ");
  if (rest == NULL) return;
  *rest = '\0';
  rest += strlen(" - ");
  const char *type = strsep(&rest, " ");
  strsep(&rest, " ");
  for (size_t i = 0; i < 5; i++)
    fields[i] = strsep(&line, " ");
  if (rest == NULL || fields[4] == NULL) return;
  for (size_t i = 0; i < VERSIONS; i++) {
    const version *v = &versions[i];
    mount found;
    if (io->of[i].in_sight || strcmp(type, v->type) != 0) continue;
    if (v->controller != NULL && !has_word(rest, v->controller)) continue;
    if (!decode(fields[3], found.group) || !decode(fields[4], found.folder))
      continue;
    found.in_sight = below(g->of[i].text, found.group) != NULL;
    io->of[i] = found;
  }
}

static void read_mounts(const char *root, mounts *out) {
  tarn__os_lines r;
  groups g;
  *out = (mounts){0};
  read_groups(root, &g);
  if (!open_file(&r, root, "/proc/self/mountinfo")) return;
  for (char *line; (line = tarn__os_lines_next(&r)) != NULL;)
    take_mount(line, &g, out);
  close(r.fd);
}

// --- limits ----------------------------------------------------------------

typedef struct amounts {
  size_t machine;  // all that it has
  size_t total;
  size_t available;
} amounts;

static void lower(size_t *io_value, size_t other) {
  if (other < *io_value) *io_value = other;
}

// Of one group. memory.stat is dear, and is read only where it matters.
static void apply_group(const version *v, const char *folder, amounts *io) {
  size_t cap = SIZE_MAX;
  size_t limit = 0;
  size_t used = 0;
  size_t cache = 0;
  for (size_t i = 0; i < 2 && v->limits[i] != NULL; i++) {
    if (read_number(folder, v->limits[i], &limit)) lower(&cap, limit);
  }
  if (cap >= io->machine) return;
  lower(&io->total, cap);
  if (!read_number(folder, v->used, &used)) used = 0;
  if (used < cap && cap - used >= io->available) return;
  read_entries(folder, "/memory.stat", &(entry){v->cache, &cache}, 1);
  used -= cache < used ? cache : used;
  lower(&io->available, used < cap ? cap - used : 0);
}

// Of |group| and of its ancestors, as far as they are mounted.
static void apply_groups(const char *root, const version *v, const mount *m,
                         const char *group, amounts *io) {
  path top;
  path folder;
  const char *rest = below(group, m->group);
  if (rest == NULL) rest = "";
  if (!join(&top, root, m->folder) || !join(&folder, top.text, rest)) return;
  size_t end = strlen(top.text);
  for (size_t length = strlen(folder.text);;) {
    apply_group(v, folder.text, io);
    if (length == end) return;
    while (length > end && folder.text[length] != '/')
      length--;
    folder.text[length] = '\0';
  }
}

static void read_memory(const char *root, const mounts *where,
                        size_t *out_total, size_t *out_available) {
  size_t total_kib = 0;
  size_t available_kib = 0;
  groups g;
  amounts found = {0};
  const entry entries[] = {{"MemTotal:", &total_kib},
                           {"MemAvailable:", &available_kib}};
  read_entries(root, "/proc/meminfo", entries, 2);
  if (tarn_size_mul(total_kib, 1024, &found.machine) &&
      tarn_size_mul(available_kib, 1024, &found.available)) {
    found.total = found.machine;
    read_groups(root, &g);
    for (size_t i = 0; i < VERSIONS; i++) {
      const char *group = g.of[i].text;
      if (*group != '\0' && *where->of[i].folder != '\0')
        apply_groups(root, &versions[i], &where->of[i], group, &found);
    }
  }
  *out_total = found.total;
  *out_available = found.available;
}

void tarn__os_memory_of(const char *root, size_t *out_total,
                        size_t *out_available) {
  mounts where;
  read_mounts(root, &where);
  read_memory(root, &where, out_total, out_available);
}

// Mounts do not move, and may be hundreds: they are looked for once.
static mounts mounted;

static void find_mounts(void) {
  read_mounts("", &mounted);
}

void tarn__os_memory(size_t *out_total, size_t *out_available) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_mounts);
  read_memory("", &mounted, out_total, out_available);
}

// --- mappings --------------------------------------------------------------

size_t tarn__os_most_mappings(void) {
  size_t most = 0;
  bool told = read_number("/proc/sys/vm", "/max_map_count", &most);
  return told && most != 0 ? most : 65530;
}
