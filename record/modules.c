// Modules: what dl_iterate_phdr tells, compared with what it told before.
//
// One thread looks at a time; another that finds it looking goes on without,
// since definitions hold wherever they stand.
//
// dl_iterate_phdr locks. In the child of a fork a thread that is not here may
// have that lock for ever, so there _dl_find_object is asked, address by
// address, if the C library has it (2.35).
#include "record/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "record/file.h"
#include "record/real.h"
#include "record/texts.h"

enum { KNOWN_MOST = 4096 };

typedef struct module {
  uint64_t begin;
  uint64_t bytes;
  uint64_t bias;
  uint64_t name_hash;
  bool seen;  // in this look
} module;

static struct {
  _Atomic bool looking;
  module known[KNOWN_MOST];
  size_t count;
  unsigned long long added;  // as the loader counts them
  unsigned long long gone;
  uint64_t number;  // of the next definition
  bool is_child;
} modules;

// ---------------------------------------------------------------------------
// Definitions
// ---------------------------------------------------------------------------

static void define(slot *mine, const module *m, const char *name) {
  uint64_t path = texts_number(mine, name, strlen(name));
  if (!slots_have_room(mine, (size_t)8 * TARN__LOG_MOST_NUMBER, NULL)) return;
  unsigned char *at = tarn__log_put_definition(&mine->writer, TARN__LOG_MODULE,
                                               ++modules.number);
  at = tarn__log_put_number(at, path);
  at = tarn__log_put_number(at, m->begin);
  at = tarn__log_put_number(at, m->bytes);
  at = tarn__log_put_number(at, m->bias);
  at = tarn__log_put_number(at, file_number());
  tarn__log_publish(&mine->writer, at);
}

// ---------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------

static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *text != '\0'; text++)
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

// From the first to the last byte that the file has in memory.
static module describe(const struct dl_phdr_info *info) {
  uint64_t low = UINT64_MAX;
  uint64_t high = 0;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD) continue;
    if (part->p_vaddr < low) low = part->p_vaddr;
    if (part->p_vaddr + part->p_memsz > high)
      high = part->p_vaddr + part->p_memsz;
  }
  if (low > high) low = high = 0;
  return (module){.begin = info->dlpi_addr + low,
                  .bytes = high - low,
                  .bias = info->dlpi_addr,
                  .name_hash = hash_of(info->dlpi_name),
                  .seen = true};
}

static module *find_known(const module *m) {
  for (size_t i = 0; i < modules.count; i++) {
    module *known = &modules.known[i];
    if (known->begin == m->begin && known->bytes == m->bytes &&
        known->name_hash == m->name_hash) {
      return known;
    }
  }
  return NULL;
}

// The program itself has no name there.
static void define_named(slot *mine, const module *m, const char *name) {
  char path[TARN__LOG_MOST_TEXT];
  if (*name == '\0') {
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    name = path;
  }
  define(mine, m, name);
}

static int see(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  module m = describe(info);
  module *known = find_known(&m);
  modules.added = info->dlpi_adds;
  modules.gone = info->dlpi_subs;
  if (known != NULL) {
    known->seen = true;
  } else if (modules.count < KNOWN_MOST) {
    modules.known[modules.count++] = m;
    define_named(context, &m, info->dlpi_name);
  }
  return 0;
}

// A module that was not seen may appear again, at another place or at this one.
static void drop_unseen(void) {
  size_t kept = 0;
  for (size_t i = 0; i < modules.count; i++) {
    if (!modules.known[i].seen) continue;
    modules.known[kept] = modules.known[i];
    modules.known[kept++].seen = false;
  }
  modules.count = kept;
}

// Ends after the first: all tell the same counts.
static int has_changed(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  *(bool *)context =
      info->dlpi_adds != modules.added || info->dlpi_subs != modules.gone;
  return 1;
}

static void look_at_all(slot *mine) {
  bool changed = false;
  (void)real()->dl_iterate_phdr(has_changed, &changed);
  if (!changed) return;
  (void)real()->dl_iterate_phdr(see, mine);
  drop_unseen();
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE

static void look_at_one(slot *mine, void *address) {
  struct dl_find_object found;
  if (real()->_dl_find_object(address, &found) != 0) return;
  uint64_t begin = (uintptr_t)found.dlfo_map_start;
  const char *name = found.dlfo_link_map->l_name;
  module m = {.begin = begin,
              .bytes = (uintptr_t)found.dlfo_map_end - begin,
              .bias = found.dlfo_link_map->l_addr,
              .name_hash = hash_of(name)};
  if (find_known(&m) != NULL || modules.count == KNOWN_MOST) return;
  modules.known[modules.count++] = m;
  define_named(mine, &m, name);
}

static bool look_at_few(slot *mine, void *const *addresses, int count) {
  if (!modules.is_child || real()->_dl_find_object == NULL) return false;
  for (int i = 0; i < count; i++)
    look_at_one(mine, addresses[i]);
  return true;
}

#else

static bool look_at_few(slot *mine, void *const *addresses, int count) {
  (void)mine;
  (void)addresses;
  (void)count;
  return false;
}

#endif

void modules_look(slot *mine, void *const *addresses, int count) {
  if (atomic_exchange(&modules.looking, true)) return;
  if (!look_at_few(mine, addresses, count)) look_at_all(mine);
  atomic_store(&modules.looking, false);
}

void modules_forget(void) {
  modules.is_child = true;
  atomic_store(&modules.looking, false);
  modules.count = 0;
  modules.added = modules.gone = 0;
  modules.number = 0;
}
