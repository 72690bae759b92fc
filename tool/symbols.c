// Symbols by libdw, where there is one. All modules lie in one Dwfl, beside
// each other at addresses of its choice: |bias| is from a module's own ones.
#include "symbols.h"

#include <stdlib.h>

#ifndef TARN_HAS_LIBDW

bool symbols_are_read(void) {
  return false;
}

symbols *symbols_open(void) {
  return NULL;
}

void symbols_close(symbols *table) {
  (void)table;
}

size_t symbols_find(symbols *table, const char *module, uint64_t address,
                    tarn_trace_frame out[SYMBOLS_MOST]) {
  (void)table;
  (void)module;
  (void)address;
  (void)out;
  return 0;
}

#else

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <string.h>
#include <sys/stat.h>

#include "kit/tool.h"

typedef char *demangle_fn(const char *name, char *out, size_t *out_size,
                          int *out_status);

// A function in a table of symbols, at addresses of the Dwfl.
typedef struct entry {
  GElf_Addr begin;
  GElf_Addr end;
  const char *name;
  bool is_global;
} entry;

typedef struct module {
  struct module *next;
  char *path;
  Dwfl_Module *dwfl;  // NULL: it is not there, or nothing that has symbols
  GElf_Addr bias;
  entry *entries;  // by begin; NULL: not asked for yet
  size_t entry_count;
} module;

// A name that was made here.
typedef struct made {
  struct made *next;
  char *text;
} made;

struct symbols {
  Dwfl *dwfl;
  module *modules;
  made *made;
  void *cxx;  // libstdc++, for names of C++
  demangle_fn *demangle;
};

bool symbols_are_read(void) {
  return true;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

// Names of C++ are read if the machine has what C++ programs run with.
static void find_demangle(symbols *table) {
  table->cxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  if (table->cxx == NULL) return;
  void *found = dlsym(table->cxx, "__cxa_demangle");
  memcpy(&table->demangle, &found, sizeof found);
}

symbols *symbols_open(void) {
  symbols *table = tool_array(1, sizeof *table);
  // With this one set, libdw would look for debug information on servers.
  unsetenv("DEBUGINFOD_URLS");
  table->dwfl = dwfl_begin(&callbacks);
  find_demangle(table);
  return table;
}

static void free_modules(module *first) {
  while (first != NULL) {
    module *next = first->next;
    free(first->entries);
    free(first->path);
    free(first);
    first = next;
  }
}

static void free_made(made *first) {
  while (first != NULL) {
    made *next = first->next;
    free(first->text);
    free(first);
    first = next;
  }
}

void symbols_close(symbols *table) {
  if (table == NULL) return;
  free_modules(table->modules);
  free_made(table->made);
  if (table->dwfl != NULL) dwfl_end(table->dwfl);
  if (table->cxx != NULL) dlclose(table->cxx);
  free(table);
}

// --- modules ---------------------------------------------------------------

// Only regular files are opened: a pipe of that name would block.
static bool is_file(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static void report(const symbols *table, module *added) {
  if (table->dwfl == NULL || !is_file(added->path)) return;
  dwfl_report_begin_add(table->dwfl);
  added->dwfl = dwfl_report_offline(table->dwfl, added->path, added->path, -1);
  dwfl_report_end(table->dwfl, NULL, NULL);
  if (added->dwfl != NULL &&
      dwfl_module_getelf(added->dwfl, &added->bias) == NULL) {
    added->dwfl = NULL;
  }
}

static module *find_module(symbols *table, const char *path) {
  for (module *known = table->modules; known != NULL; known = known->next) {
    if (strcmp(known->path, path) == 0) return known;
  }
  module *added = tool_array(1, sizeof *added);
  *added = (module){.next = table->modules, .path = tool_text(path)};
  table->modules = added;
  report(table, added);
  return added;
}

// --- tables of symbols -----------------------------------------------------

// Libdw itself would look through the whole table for each address.

static bool is_code(const GElf_Sym *symbol) {
  int type = GELF_ST_TYPE(symbol->st_info);
  return symbol->st_shndx != SHN_UNDEF && symbol->st_size > 0 &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

// Of several names of one function the last: the global one, if there is one.
static int compare_entries(const void *a, const void *b) {
  const entry *x = a;
  const entry *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->is_global != y->is_global) return x->is_global ? 1 : -1;
  return -strcmp(x->name, y->name);
}

static void read_entries(module *of) {
  int count = dwfl_module_getsymtab(of->dwfl);
  of->entries = tool_array(count > 0 ? (size_t)count : 1, sizeof *of->entries);
  for (int i = 0; i < count; i++) {
    GElf_Sym symbol;
    GElf_Addr begin = 0;
    const char *name =
        dwfl_module_getsym_info(of->dwfl, i, &symbol, &begin, NULL, NULL, NULL);
    if (name == NULL || *name == '\0' || !is_code(&symbol)) continue;
    of->entries[of->entry_count++] =
        (entry){.begin = begin,
                .end = begin + symbol.st_size,
                .name = name,
                .is_global = GELF_ST_BIND(symbol.st_info) == STB_GLOBAL};
  }
  if (of->entry_count == 0) return;
  qsort(of->entries, of->entry_count, sizeof *of->entries, compare_entries);
}

// The last function that begins at or before |address|, if that is in it.
static const char *find_entry(module *in, GElf_Addr address) {
  if (in->entries == NULL) read_entries(in);
  size_t low = 0, high = in->entry_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (in->entries[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || address >= in->entries[low - 1].end) return NULL;
  return in->entries[low - 1].name;
}

// --- names -----------------------------------------------------------------

// |name| as its author wrote it. The texts of libdw live as long as it does.
static const char *readable(symbols *table, const char *name) {
  if (name == NULL) return "";
  if (strncmp(name, "_Z", 2) != 0 || table->demangle == NULL) return name;
  int status = -1;
  char *text = table->demangle(name, NULL, NULL, &status);
  if (text == NULL) return name;
  made *kept = tool_array(1, sizeof *kept);
  *kept = (made){.next = table->made, .text = text};
  table->made = kept;
  return text;
}

static const char *name_of(symbols *table, Dwarf_Die *die) {
  Dwarf_Attribute attribute;
  const char *linked = dwarf_formstring(
      dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
  return readable(table, linked != NULL ? linked : dwarf_diename(die));
}

// --- places ----------------------------------------------------------------

typedef struct search {
  symbols *table;
  module *module;
  Dwarf_Addr address;  // as the Dwfl has it
  tarn_trace_frame *out;
  size_t count;
} search;

// Where a system keeps its libraries. Their sources are not on the machine,
// and go by names such as "./malloc/malloc.c", which say less than the library.
static bool is_of_system(const char *path) {
  return strncmp(path, "/lib", 4) == 0 || strncmp(path, "/usr/lib", 8) == 0;
}

// The unit of compilation that has the address. clang writes no table of the
// addresses of units (.debug_aranges): then the units are asked one by one.
static Dwarf_Die *find_unit(const search *at, Dwarf_Addr *out_bias) {
  Dwfl_Module *in = at->module->dwfl;
  Dwarf_Die *unit = dwfl_module_addrdie(in, at->address, out_bias);
  if (unit != NULL) return unit;
  while ((unit = dwfl_module_nextcu(in, unit, out_bias)) != NULL) {
    if (dwarf_haspc(unit, at->address - *out_bias) == 1) return unit;
  }
  return NULL;
}

static void find_line(const search *at, Dwarf_Die *unit, Dwarf_Addr address,
                      tarn_trace_frame *place) {
  int line = 0;
  *place = (tarn_trace_frame){.file = at->module->path, .function = ""};
  if (unit == NULL || is_of_system(at->module->path)) return;
  Dwarf_Line *found = dwarf_getsrc_die(unit, address);
  const char *file = dwarf_linesrc(found, NULL, NULL);
  if (file == NULL || dwarf_lineno(found, &line) != 0) return;
  place->file = file;
  place->line = line > 0 ? (uint32_t)line : 0;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_formudata(dwarf_attr(die, name, &attribute), &number) != 0) {
    return 0;
  }
  return number;
}

// From where the function |inlined| is called.
static void find_call(Dwarf_Die *unit, Dwarf_Die *inlined,
                      tarn_trace_frame *place) {
  Dwarf_Files *files = NULL;
  size_t count = 0;
  if (place->line == 0) return;
  Dwarf_Word number = number_of(inlined, DW_AT_call_file);
  place->line = (uint32_t)number_of(inlined, DW_AT_call_line);
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count) return;
  const char *file = dwarf_filesrc(files, (size_t)number, NULL, NULL);
  if (file != NULL) place->file = file;
}

// The scopes around the address, innermost first. Outside of an inlined
// function, dwarf_getscopes continues with the place where that was defined;
// dwarf_getscopes_die continues with the place where it is inlined. Free them.
static int find_scopes(Dwarf_Die *unit, Dwarf_Addr address,
                       Dwarf_Die **out_scopes) {
  Dwarf_Die *innermost = NULL;
  *out_scopes = NULL;
  if (dwarf_getscopes(unit, address, &innermost) <= 0) return 0;
  int count = dwarf_getscopes_die(&innermost[0], out_scopes);
  free(innermost);
  return count > 0 ? count : 0;
}

// Adds a place for each function around the address; |place| is where it is.
static void add_functions(search *at, Dwarf_Die *unit, Dwarf_Die *scopes,
                          int count, tarn_trace_frame place) {
  for (int i = 0; i < count && at->count < SYMBOLS_MOST; i++) {
    int tag = dwarf_tag(&scopes[i]);
    bool is_inlined = tag == DW_TAG_inlined_subroutine;
    if (!is_inlined && tag != DW_TAG_subprogram) continue;
    place.function = name_of(at->table, &scopes[i]);
    at->out[at->count++] = place;
    if (!is_inlined) return;
    find_call(unit, &scopes[i], &place);
  }
}

// Without debug information there is still the table of symbols.
static void add_symbol(search *at, tarn_trace_frame place) {
  const char *name = find_entry(at->module, at->address);
  if (name == NULL && place.line == 0) return;
  place.function = readable(at->table, name);
  at->out[at->count++] = place;
}

size_t symbols_find(symbols *table, const char *path, uint64_t address,
                    tarn_trace_frame out[SYMBOLS_MOST]) {
  module *found = find_module(table, path);
  if (found->dwfl == NULL || address == 0) return 0;
  // A call may be the last thing in a function: what returns is behind it.
  search at = {.table = table,
               .module = found,
               .address = address - 1 + found->bias,
               .out = out};
  Dwarf_Addr bias = 0;
  Dwarf_Die *unit = find_unit(&at, &bias);
  tarn_trace_frame place;
  find_line(&at, unit, at.address - bias, &place);
  if (unit != NULL) {
    Dwarf_Die *scopes = NULL;
    int count = find_scopes(unit, at.address - bias, &scopes);
    add_functions(&at, unit, scopes, count, place);
    free(scopes);
  }
  if (at.count == 0) add_symbol(&at, place);
  return at.count;
}

#endif  // TARN_HAS_LIBDW
