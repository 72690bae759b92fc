// Frames and modules as texts.
#include "frame_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "tool.h"

static bool is_unknown(const char *file) {
  return *file == '\0' || strcmp(file, "??") == 0;
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

// Joins what is there of a frame.
static char *join(const char *file, uint32_t line, const char *function,
                  size_t function_length) {
  char number[16] = "";
  const char *gap = *file && function_length > 0 ? " " : "";
  size_t room = strlen(file) + sizeof number + function_length + 2;
  if (*file == '\0' && function_length == 0) return tool_text("(unknown)");
  if (line > 0 && *file) snprintf(number, sizeof number, ":%u", line);
  char *text = tool_array(room, 1);
  snprintf(text, room, "%s%s%s%.*s", file, number, gap, (int)function_length,
           function);
  return text;
}

// snprintf counts in int; nobody reads that far.
static size_t readable(size_t length) {
  enum { LONGEST = 1 << 20 };
  return length < LONGEST ? length : LONGEST;
}

char *frame_names_frame(const tarn_trace_frame *frame) {
  const char *file = is_unknown(frame->file) ? "" : frame->file;
  return join(file, frame->line, frame->function,
              readable(strlen(frame->function)));
}

// Without arguments, but "(anonymous namespace)" stays.
static size_t length_without_arguments(const char *function) {
  static const char anonymous[] = "(anonymous namespace)";
  const char *at = function;
  while (*at && *at != '(') {
    at++;
    if (strncmp(at, anonymous, sizeof anonymous - 1) == 0) {
      at += sizeof anonymous - 1;
    }
  }
  if (strncmp(function, anonymous, sizeof anonymous - 1) == 0) {
    return strlen(function);
  }
  bool scoped = strstr(function, "::") != NULL;
  return scoped && at > function ? (size_t)(at - function) : strlen(function);
}

static const char *below(const char *file, const char *root) {
  size_t length = strlen(root);
  return strncmp(file, root, length) == 0 && file[length] ? file + length
                                                          : file;
}

static char *others(size_t rows) {
  char count[FORMAT_SIZE], text[2 * FORMAT_SIZE];
  snprintf(text, sizeof text, "(%s other%s)", format_count(count, rows),
           rows == 1 ? "" : "s");
  return tool_text(text);
}

// The name of a row that is no frame; NULL for those that are.
static char *name_of_kind(const holder *h) {
  switch (h->kind) {
    case HOLDER_BASELINE:
      return tool_text("(before the trace began)");
    case HOLDER_NO_STACK:
      return tool_text("(no stack)");
    case HOLDER_KEPT:
      return tool_text("(never freed in the trace)");
    case HOLDER_OTHERS:
      return others(h->rows);
    case HOLDER_OWN:
    case HOLDER_LIBRARY:
      break;
  }
  return NULL;
}

char *frame_names_holder(const tarn_trace *trace, const holder *h) {
  char *name = name_of_kind(h);
  return name ? name : frame_names_frame(&trace->frames[h->frame]);
}

char *frame_names_short(const tarn_trace *trace, const holder *h,
                        const char *root) {
  char *name = name_of_kind(h);
  if (name != NULL) return name;
  const tarn_trace_frame *frame = &trace->frames[h->frame];
  const char *file = is_unknown(frame->file) ? "" : below(frame->file, root);
  return join(file, frame->line, frame->function,
              readable(length_without_arguments(frame->function)));
}

// ---------------------------------------------------------------------------
// Folders
// ---------------------------------------------------------------------------

static size_t folder_length(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash ? (size_t)(slash - file) + 1 : 0;
}

// How much of |root|, up to a '/', |file| shares.
static size_t common_folder(const char *root, size_t length, const char *file) {
  size_t same = 0, folder = 0;
  while (same < length && root[same] == file[same]) {
    same++;
    if (root[same - 1] == '/') folder = same;
  }
  return folder;
}

// Typed code, "<stdin>", has no folder and takes none from others.
static bool has_folder(const tarn_trace *trace, const holder *h) {
  return h->kind == HOLDER_OWN && trace->frames[h->frame].file[0] == '/';
}

char *frame_names_root(const tarn_trace *trace, const holder_list *list) {
  const char *root = NULL;
  size_t length = 0;
  for (size_t i = 0; i < list->count; i++) {
    if (!has_folder(trace, &list->items[i])) continue;
    const char *file = trace->frames[list->items[i].frame].file;
    if (root == NULL) {
      root = file;
      length = folder_length(file);
    }
    length = common_folder(root, length, file);
  }
  char *text = tool_array(length + 1, 1);
  if (root != NULL) memcpy(text, root, length);
  return text;
}

// ---------------------------------------------------------------------------
// Modules
// ---------------------------------------------------------------------------

// Behind the folder in which packages are installed, or NULL.
static const char *package_of(const char *file) {
  static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *at = strstr(file, folders[i]);
    if (at != NULL) return at + strlen(folders[i]);
  }
  const char *at = strstr(file, "/lib/python3.");
  if (at == NULL) return NULL;
  at = strchr(at + strlen("/lib/python3."), '/');
  return at ? at + 1 : NULL;
}

// The end of the |depth|-th part of |name|, where |gap| parts them.
static void keep_parts(char *name, const char *gap, size_t depth) {
  char *at = name;
  for (size_t i = 0; depth > 0; i++) {
    at = strstr(at, gap);
    if (at == NULL) return;
    if (i + 1 == depth) {
      *at = '\0';
      return;
    }
    at += strlen(gap);
  }
}

static bool cut_end(char *text, const char *tail) {
  size_t length = strlen(text), size = strlen(tail);
  if (length <= size || strcmp(text + length - size, tail) != 0) return false;
  text[length - size] = '\0';
  return true;
}

// Takes "a/../" out of a path.
static void fold_parents(char *path) {
  for (char *at = strstr(path, "/../"); at != NULL; at = strstr(path, "/../")) {
    char *from = at;
    while (from > path && from[-1] != '/')
      from--;
    if (from == at) return;
    memmove(from, at + 4, strlen(at + 4) + 1);
  }
}

static char *module_of_python(const char *file, const char *root) {
  const char *package = package_of(file);
  char *name = tool_text(package ? package : below(file, root));
  fold_parents(name);
  (void)cut_end(name, ".py");
  (void)cut_end(name, "/__init__");
  for (char *at = name + 1; *name && *at; at++) {
    if (*at == '/') *at = '.';
  }
  return name;
}

// The scope of a function of C++, or NULL: what stands in front of its last
// "::" outside of brackets.
static char *module_of_scope(const char *function) {
  size_t length = length_without_arguments(function), end = 0;
  size_t depth = 0;
  for (size_t i = 0; i + 1 < length; i++) {
    if (function[i] == '<') depth++;
    if (function[i] == '>' && depth > 0) depth--;
    if (depth == 0 && function[i] == ':' && function[i + 1] == ':') end = i;
  }
  if (end == 0) return NULL;
  char *name = tool_array(end + 1, 1);
  memcpy(name, function, end);
  return name;
}

static bool is_python_file(const char *file) {
  size_t length = strlen(file);
  return length > 3 && strcmp(file + length - 3, ".py") == 0;
}

char *frame_names_module(const tarn_trace_frame *frame, const char *root,
                         size_t depth) {
  const char *gap = ".";
  char *name = NULL;
  if (is_python_file(frame->file)) {
    name = module_of_python(frame->file, root);
  } else {
    name = module_of_scope(frame->function);
    gap = "::";
  }
  if (name == NULL && !is_unknown(frame->file)) {
    name = tool_text(frame->file + folder_length(frame->file));
    gap = "/";
  }
  if (name == NULL) name = tool_text("(unknown)");
  keep_parts(name, gap, depth);
  return name;
}
